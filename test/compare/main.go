// Command compare sends the same requests, good and bad and made at random, to a real kube-apiserver and to ours, both
// of them fresh and with an administrator's token, and prints each to which they answer otherwise: by code, Status,
// warnings or body, without what differs from run to run (identities, times, versions of objects). What a seed makes is
// made again by the same seed.
//
//	compare -real https://127.0.0.1:6443 -our https://127.0.0.1:7443 -token tok -seed 1 -n 1000
//	compare … -definitions 50     definitions made and removed, with what discovery and OpenAPI then say of them
//	compare … -openapi            all OpenAPI documents, in JSON and protobuf, in place of requests
//	compare … -manifests DIR -n 3  the definitions and objects in a directory of manifests, and each object changed at random three times
//
// What the two answer otherwise by intent is counted by reason, and told in docs/architecture.md. Exits with 1 if there
// are other differences.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
)

func main() {
	real := flag.String("real", "", "URL of the real kube-apiserver")
	our := flag.String("our", "", "URL of ours")
	token := flag.String("token", "tok", "bearer token of an administrator of both")
	seed := flag.Uint64("seed", 1, "what the requests are made from")
	n := flag.Int("n", 1000, "number of requests")
	definitions := flag.Int("definitions", 0, "number of definitions that are made and removed, in place of requests")
	documents := flag.Bool("openapi", false, "compare the OpenAPI documents, in place of requests")
	manifests := flag.String("manifests", "",
		"directory of manifests that are made, in place of requests; a directory below it is a set")
	only := flag.String("only", "",
		"regular expression of the files of -manifests whose objects are made; definitions are all made")
	perKind := flag.Int("per-kind", 20, "number of objects of a kind that are made of each set of -manifests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := &pair{servers: [2]server{newServer(*real, *token), newServer(*our, *token)},
		random: random{rand.New(rand.NewPCG(*seed, 9))}, intended: map[string]int{}}
	var err error
	if *documents {
		err = p.compareOpenAPI(ctx)
	} else if *manifests != "" {
		err = p.compareManifests(ctx, *manifests, *only, *n, *perKind)
	} else if err = p.prepare(ctx); err == nil && *definitions > 0 {
		err = p.compareDefinitions(ctx, *definitions)
	} else if err == nil {
		err = p.compareRequests(ctx, *n)
	}
	for _, reason := range slices.Sorted(maps.Keys(p.intended)) {
		fmt.Printf("%4d × %s\n", p.intended[reason], reason)
	}
	fmt.Printf("%d compared, %d differ that should not\n", p.asked, p.differ)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
	}
	if err != nil || p.differ > 0 {
		os.Exit(1)
	}
}
