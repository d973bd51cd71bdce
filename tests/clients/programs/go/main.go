// Produces records to a topic with TLS and SASL, reads them back and prints each in a line.
//
// Arguments: the client library, the topic, and how many records. Standard input holds one JSON
// object with the names that librdkafka has for the rest, so that no secret is an argument.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
)

type connection struct {
	Address   string `json:"bootstrap.servers"`
	Protocol  string `json:"security.protocol"`
	Authority string `json:"ssl.ca.location"`
	Mechanism string `json:"sasl.mechanism"`
	Username  string `json:"sasl.username"`
	Password  string `json:"sasl.password"`
	Token     string `json:"token"`
}

// tls is nil where the protocol has none.
func (c connection) tls() *tls.Config {
	if !strings.HasSuffix(c.Protocol, "SSL") {
		return nil
	}
	pem, err := os.ReadFile(c.Authority)
	if err != nil {
		log.Fatal(err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		log.Fatal("no certificate in ", c.Authority)
	}
	return &tls.Config{RootCAs: authorities}
}

func values(count int) []string {
	made := make([]string, count)
	for i := range made {
		made[i] = fmt.Sprintf("record %d", i)
	}
	return made
}

func main() {
	log.SetFlags(0)
	var to connection
	if err := json.NewDecoder(os.Stdin).Decode(&to); err != nil {
		log.Fatal(err)
	}
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	libraries := map[string]func(connection, string, []string) ([]string, error){
		"franz-go": roundTripByFranz,
		"sarama":   roundTripBySarama,
	}
	found, err := libraries[os.Args[1]](to, os.Args[2], values(count))
	if err != nil {
		log.Fatal(err)
	}
	for _, value := range found {
		fmt.Println(value)
	}
}
