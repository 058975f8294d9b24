package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// adminStep is one call of kadm.
func adminStep(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	switch r.Op {
	case "create_topic":
		config := map[string]*string{}
		for name, value := range r.Config {
			config[name] = kadm.StringPtr(value)
		}
		made, err := admin.CreateTopic(ctx, r.Partitions, 1, config, r.Topic)
		return map[string]any{"partitions": made.NumPartitions}, err
	case "describe_topic":
		found, err := admin.ListTopics(ctx, r.Topic)
		return map[string]any{"partitions": len(found[r.Topic].Partitions), "id": found[r.Topic].ID.String()}, err
	case "end_offsets":
		found, err := admin.ListEndOffsets(ctx, r.Topic)
		return byPartition(found, r.Topic), err
	case "start_offsets":
		found, err := admin.ListStartOffsets(ctx, r.Topic)
		return byPartition(found, r.Topic), err
	case "delete_records":
		offsets := kadm.Offsets{}
		offsets.AddOffset(r.Topic, 0, r.Before, -1)
		answers, err := admin.DeleteRecords(ctx, offsets)
		if err != nil {
			return nil, err
		}
		return answers[r.Topic][0].LowWatermark, answers.Error()
	case "describe_config":
		found, err := admin.DescribeTopicConfigs(ctx, r.Topic)
		values := map[string]string{}
		for _, resource := range found {
			for _, each := range resource.Configs {
				values[each.Key] = each.MaybeValue()
			}
		}
		return values, err
	case "lag":
		lags, err := admin.Lag(ctx, r.Group)
		if err != nil {
			return nil, err
		}
		found := lags[r.Group]
		return map[string]any{"state": found.State, "lag": found.Lag.Total()}, found.Error()
	case "delete_topic":
		_, err := admin.DeleteTopic(ctx, r.Topic)
		return nil, err
	}
	return nil, fmt.Errorf("no such step: %s", r.Op)
}

func byPartition(found kadm.ListedOffsets, topic string) map[int32]int64 {
	offsets := map[int32]int64{}
	for partition, each := range found[topic] {
		offsets[partition] = each.Offset
	}
	return offsets
}
