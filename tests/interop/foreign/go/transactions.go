package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Transactional producers that stay open between steps, and a whole pipeline as one step.
var producers = map[string]*kgo.Client{}

func transactional(r request) []kgo.Opt {
	timeout := time.Duration(r.TimeoutMs) * time.Millisecond
	if timeout == 0 {
		timeout = time.Minute
	}
	return []kgo.Opt{
		kgo.TransactionalID(r.TransactionalID),
		kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	}
}

func transaction(r request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := producers[r.Producer]
	switch r.Op {
	case "txn_open":
		opened, err := r.client(transactional(r)...)
		if err != nil {
			return nil, err
		}
		producers[r.Producer] = opened
		// franz-go takes the transactional id when it is first needed; it is needed now.
		_, _, err = opened.ProducerID(ctx)
		return nil, err
	case "txn_begin":
		return nil, client.BeginTransaction()
	case "txn_send":
		sent := &kgo.Record{Topic: r.Topic, Partition: *r.Partition, Value: *r.Value}
		return nil, client.ProduceSync(ctx, sent).FirstErr()
	case "txn_commit":
		return nil, client.EndTransaction(ctx, kgo.TryCommit)
	case "txn_abort":
		if err := client.AbortBufferedRecords(ctx); err != nil {
			return nil, err
		}
		return nil, client.EndTransaction(ctx, kgo.TryAbort)
	case "txn_close":
		delete(producers, r.Producer)
		client.Close()
		return nil, nil
	case "txn_pipe":
		return pipe(r)
	}
	return nil, fmt.Errorf("no such step: %s", r.Op)
}

// pipe moves r.Count records from one topic to another, exactly once; every fifth transaction is aborted and repeated.
func pipe(r request) (any, error) {
	options := append(transactional(r),
		kgo.SeedBrokers(r.Bootstrap),
		kgo.ConsumerGroup(r.Group),
		kgo.ConsumeTopics(r.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxWait(200*time.Millisecond),
		kgo.SessionTimeout(10*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	moved := 0
	for number := 1; moved < r.Count; number++ {
		fetches := session.PollRecords(ctx, 10)
		if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("only %d of %d records in time", moved, r.Count)
		}
		if err := session.Begin(); err != nil {
			return nil, err
		}
		count := 0
		fetches.EachRecord(func(one *kgo.Record) {
			count++
			copied := &kgo.Record{Topic: r.Target, Partition: one.Partition, Value: one.Value}
			session.Produce(ctx, copied, kgo.AbortingFirstErrPromise(session.Client()).Promise())
		})
		committed, err := session.End(ctx, kgo.TransactionEndTry(number%5 != 0))
		if err != nil {
			return nil, err
		}
		if committed {
			moved += count
		}
	}
	return moved, nil
}
