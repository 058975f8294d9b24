package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security makes options of settings with librdkafka's names.
func (r request) security() ([]kgo.Opt, error) {
	var options []kgo.Opt
	protocol := r.Settings["security.protocol"]
	if strings.HasSuffix(protocol, "SSL") {
		pem, err := os.ReadFile(r.Settings["ssl.ca.location"])
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(pem)
		config := &tls.Config{RootCAs: trusted}
		if own := r.Settings["ssl.certificate.location"]; own != "" {
			identity, err := tls.LoadX509KeyPair(own, r.Settings["ssl.key.location"])
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{identity}
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if strings.HasPrefix(protocol, "SASL") {
		user, password := r.Settings["sasl.username"], r.Settings["sasl.password"]
		switch mechanism := r.Settings["sasl.mechanism"]; mechanism {
		case "PLAIN":
			options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
		case "SCRAM-SHA-256":
			options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
		case "SCRAM-SHA-512":
			options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
		case "OAUTHBEARER":
			options = append(options, kgo.SASL(oauth.Auth{Token: r.Settings["token"]}.AsMechanism()))
		default:
			return nil, fmt.Errorf("no mechanism %q", mechanism)
		}
	}
	return options, nil
}

// login asks one question of the broker: the error is why it could not.
func login(r request) error {
	client, err := r.client(kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout())
	defer cancel()
	return client.Ping(ctx)
}
