package main

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

func roundTripBySarama(to connection, topic string, values []string) ([]string, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Metadata.Retry.Max = 0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	if tls := to.tls(); tls != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = tls
	}
	if to.Mechanism != "" {
		logInWithSarama(config, to)
	}
	client, err := sarama.NewClient([]string{to.Address}, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return nil, err
	}
	for _, value := range values {
		message := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}
		if _, _, err := producer.SendMessage(message); err != nil {
			return nil, err
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	var found []string
	for range values {
		found = append(found, string((<-partition.Messages()).Value))
	}
	return found, nil
}

func logInWithSarama(config *sarama.Config, to connection) {
	sasl := &config.Net.SASL
	sasl.Enable = true
	sasl.Mechanism = sarama.SASLMechanism(to.Mechanism)
	sasl.User, sasl.Password = to.Username, to.Password
	switch to.Mechanism {
	case "SCRAM-SHA-256":
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
			return &conversation{hash: scram.SHA256}
		}
	case "SCRAM-SHA-512":
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
			return &conversation{hash: scram.SHA512}
		}
	case "OAUTHBEARER":
		sasl.TokenProvider = token(to.Token)
	}
}

// token gives Sarama the same token for each connection.
type token string

func (t token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

// conversation is SCRAM, which Sarama leaves to its user.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
