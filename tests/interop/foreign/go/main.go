// Command interop is franz-go doing what a test asks: a JSON object per line on stdin, one per line back on stdout.
// See ../agents.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type header [2]*string

type record struct {
	Topic     string   `json:"topic"`
	Partition *int32   `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       *[]byte  `json:"key"`
	Value     *[]byte  `json:"value"`
	Headers   []header `json:"headers"`
}

type request struct {
	Op         string            `json:"op"`
	Bootstrap  string            `json:"bootstrap"`
	Topic      string            `json:"topic"`
	Topics     []string          `json:"topics"`
	Pattern    string            `json:"pattern"`
	Codec      string            `json:"codec"`
	Records    []record          `json:"records"`
	Count      int               `json:"count"`
	FromMs     int64             `json:"from_ms"`
	TimeoutMs  int64             `json:"timeout_ms"`
	Member     string            `json:"member"`
	Group      string            `json:"group"`
	Settings   map[string]string `json:"settings"`
	Partitions int32             `json:"partitions"`
	Config     map[string]string `json:"config"`
	Before     int64             `json:"before"`

	Producer        string  `json:"producer"`
	TransactionalID string  `json:"transactional_id"`
	Partition       *int32  `json:"partition"`
	Value           *[]byte `json:"value"`
	Source          string  `json:"source"`
	Target          string  `json:"target"`
}

func (r request) timeout() time.Duration {
	if r.TimeoutMs > 0 {
		return time.Duration(r.TimeoutMs) * time.Millisecond
	}
	return 20 * time.Second
}

func (r request) client(options ...kgo.Opt) (*kgo.Client, error) {
	common := []kgo.Opt{
		kgo.SeedBrokers(r.Bootstrap),
		kgo.ClientID("franz-go"),
		kgo.ProducerBatchMaxBytes(16 << 20),
		kgo.FetchMaxBytes(64 << 20),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
	}
	secured, err := r.security()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(append(common, secured...), options...)...)
}

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func produce(r request) (any, error) {
	options := []kgo.Opt{kgo.ProducerBatchCompression(codecs[r.Codec])}
	if len(r.Records) > 0 && r.Records[0].Partition != nil {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := r.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for _, one := range r.Records {
		out = append(out, one.toKgo(r.Topic))
	}
	results := client.ProduceSync(ctx, out...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	sent := make([][2]int64, len(out))
	for i, one := range out {
		sent[i] = [2]int64{int64(one.Partition), one.Offset}
	}
	return sent, nil
}

func (one record) toKgo(topic string) *kgo.Record {
	made := &kgo.Record{Topic: topic}
	if one.Key != nil {
		made.Key = *one.Key
	}
	if one.Value != nil {
		made.Value = *one.Value
	}
	if one.Partition != nil {
		made.Partition = *one.Partition
	}
	if one.Timestamp != nil {
		made.Timestamp = time.UnixMilli(*one.Timestamp)
	}
	for _, each := range one.Headers {
		made.Headers = append(made.Headers, kgo.RecordHeader{Key: *each[0], Value: fromBase64(each[1])})
	}
	return made
}

func fromKgo(r *kgo.Record) record {
	partition, timestamp := r.Partition, r.Timestamp.UnixMilli()
	made := record{Topic: r.Topic, Partition: &partition, Offset: r.Offset, Timestamp: &timestamp, Headers: []header{}}
	if r.Key != nil {
		made.Key = &r.Key
	}
	if r.Value != nil {
		made.Value = &r.Value
	}
	for _, each := range r.Headers {
		key := each.Key
		made.Headers = append(made.Headers, header{&key, toBase64(each.Value)})
	}
	return made
}

func consume(r request) (any, error) {
	from := kgo.NewOffset().AtStart()
	if r.FromMs > 0 {
		from = kgo.NewOffset().AfterMilli(r.FromMs)
	}
	options := []kgo.Opt{
		kgo.ConsumeTopics(r.Topic),
		kgo.ConsumeResetOffset(from),
		kgo.FetchMaxWait(200 * time.Millisecond),
	}
	if r.Settings["isolation.level"] == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := r.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout())
	defer cancel()
	seen := []record{}
	for len(seen) < r.Count && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(one *kgo.Record) { seen = append(seen, fromKgo(one)) })
	}
	return seen, nil
}

func admin(r request) (any, error) {
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout())
	defer cancel()
	return adminStep(ctx, kadm.NewClient(client), r)
}

func perform(r request) (any, error) {
	if strings.HasPrefix(r.Op, "txn_") {
		return transaction(r)
	}
	switch r.Op {
	case "login":
		return nil, login(r)
	case "hello":
		return "franz-go", nil
	case "produce":
		return produce(r)
	case "consume":
		return consume(r)
	case "join":
		return nil, join(r)
	case "seen":
		return find(r.Member).shown(), nil
	case "leave":
		return leave(r)
	default:
		return admin(r)
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var r request
		answer := map[string]any{}
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			answer["result"], err = perform(r)
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		encoded, err := json.Marshal(answer)
		if err != nil {
			encoded, _ = json.Marshal(map[string]any{"error": err.Error()})
		}
		fmt.Println(string(encoded))
	}
}
