package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func roundTripByFranz(to connection, topic string, values []string) ([]string, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(to.Address),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if config := to.tls(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	if to.Mechanism != "" {
		options = append(options, kgo.SASL(franzMechanism(to)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx := context.Background()
	// A client that is refused would try again: the first connection says why.
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: topic, Value: []byte(value)}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	var found []string
	for len(found) < len(values) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) { found = append(found, string(r.Value)) })
	}
	return found, nil
}

func franzMechanism(to connection) sasl.Mechanism {
	login := scram.Auth{User: to.Username, Pass: to.Password}
	switch to.Mechanism {
	case "PLAIN":
		return plain.Auth{User: to.Username, Pass: to.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: to.Token}.AsMechanism()
	}
	panic(fmt.Sprint("no mechanism ", to.Mechanism))
}
