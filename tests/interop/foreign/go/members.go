package main

import (
	"context"
	"encoding/base64"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// member polls and commits in the background until it is told to leave.
type member struct {
	client  *kgo.Client
	cancel  context.CancelFunc
	stopped chan struct{}

	mutex    sync.Mutex
	assigned map[string]map[int32]bool
	records  []record
	failure  *string
}

var (
	membersMutex sync.Mutex
	members      = map[string]*member{}
)

func find(name string) *member {
	membersMutex.Lock()
	defer membersMutex.Unlock()
	return members[name]
}

func join(r request) error {
	m := &member{stopped: make(chan struct{}), assigned: map[string]map[int32]bool{}, records: []record{}}
	options := []kgo.Opt{
		kgo.ConsumerGroup(r.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.SessionTimeout(10 * time.Second),
		kgo.RebalanceTimeout(10 * time.Second),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { m.own(got, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { m.own(lost, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { m.own(lost, false) }),
	}
	if r.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(r.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(r.Topics...))
	}
	switch r.Settings["protocol"] {
	case "consumer":
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	case "range":
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	}
	if id := r.Settings["instance"]; id != "" {
		options = append(options, kgo.InstanceID(id))
	}
	client, err := r.client(options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.client, m.cancel = client, cancel
	membersMutex.Lock()
	members[r.Member] = m
	membersMutex.Unlock()
	go m.poll(ctx)
	return nil
}

func (m *member) own(partitions map[string][]int32, gained bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for topic, list := range partitions {
		for _, partition := range list {
			if m.assigned[topic] == nil {
				m.assigned[topic] = map[int32]bool{}
			}
			if gained {
				m.assigned[topic][partition] = true
			} else {
				delete(m.assigned[topic], partition)
			}
		}
	}
}

func (m *member) poll(ctx context.Context) {
	defer close(m.stopped)
	for ctx.Err() == nil {
		fetches := m.client.PollFetches(ctx)
		m.mutex.Lock()
		fetches.EachRecord(func(one *kgo.Record) { m.records = append(m.records, fromKgo(one)) })
		m.mutex.Unlock()
		if fetches.NumRecords() > 0 {
			if err := m.client.CommitUncommittedOffsets(context.Background()); err != nil {
				text := err.Error()
				m.mutex.Lock()
				m.failure = &text
				m.mutex.Unlock()
			}
		}
	}
}

func (m *member) shown() any {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	assignment := [][2]any{}
	for topic, partitions := range m.assigned {
		for partition := range partitions {
			assignment = append(assignment, [2]any{topic, partition})
		}
	}
	return map[string]any{"assignment": assignment, "records": append([]record{}, m.records...), "error": m.failure}
}

func leave(r request) (any, error) {
	m := find(r.Member)
	m.cancel()
	<-m.stopped
	m.client.Close()
	membersMutex.Lock()
	delete(members, r.Member)
	membersMutex.Unlock()
	return m.shown(), nil
}

func fromBase64(text *string) []byte {
	if text == nil {
		return nil
	}
	raw, _ := base64.StdEncoding.DecodeString(*text)
	return raw
}

func toBase64(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(raw)
	return &text
}
