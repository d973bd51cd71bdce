// Command cert-manager-controller runs cert-manager's own controllers of Certificates, and of Issuers that have an
// authority, for one namespace: its argument. KUBECONFIG says where.
//
// A release's own program is a module that only a checkout can build.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	options := controller.ContextOptions{Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: os.Args[1]}
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		log.Fatal(err)
	}
	var running sync.WaitGroup
	for name, construct := range controller.Known() {
		each, err := construct(factory)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		running.Go(func() {
			if err := each.Run(1, ctx); err != nil {
				log.Fatalf("%s: %v", name, err)
			}
		})
	}
	shared, err := factory.Build()
	if err != nil {
		log.Fatal(err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	running.Wait()
}
