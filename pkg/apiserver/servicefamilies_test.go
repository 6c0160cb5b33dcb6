package apiserver_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz/always"
	"bonsai/pkg/apiserver/registry/serviceip"
)

// serviceAddress matches what a server may have chosen.
var serviceAddress = regexp.MustCompile(`10\.96\.[0-9.]+|fd00:96::[0-9a-f:]*`)

// chosenAddresses are those that the recorded requests name.
var chosenAddresses = map[string]bool{"10.96.7.7": true, "10.96.7.8": true, "10.96.9.9": true, "fd00:96::7:7": true,
	"fd00:96::7:8": true, "fd00:96::9:9": true}

// TestServiceFamilies makes and changes a Service as a real kube-apiserver v1.37.2 was asked to, on servers with one
// range of addresses and with two, of either family first, and expects its codes, messages, families, policies and
// addresses (KEP-563).
func TestServiceFamilies(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/servicefamilies.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Ranges []string
		// Cases are the requests in the life of a Service; Answers has one for each of Ranges.
		Cases [][]struct {
			Method, Body string
			Answers      []string
		}
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	for i, ranges := range recorded.Ranges {
		t.Run(ranges, func(t *testing.T) {
			t.Parallel()
			a := startWithRanges(t, strings.Split(ranges, ","))
			const path = "/api/v1/namespaces/default/services"
			for _, life := range recorded.Cases {
				for _, step := range life {
					at, media := path+"/s", "application/merge-patch+json"
					switch step.Method {
					case http.MethodPost:
						at, media = path, "application/json"
					case http.MethodPut:
						media = "application/json"
					}
					code, _, body := a.call(t, step.Method, at, step.Body, media)
					if got := familiesIn(t, code, body); got != step.Answers[i] {
						t.Errorf("%s %s, after %s:\n got %s\nwant %s", step.Method, step.Body, life[0].Body, got,
							step.Answers[i])
					}
				}
				a.call(t, http.MethodDelete, path+"/s", "", "application/json")
			}
			var left networkingv1.IPAddressList
			_, _, body := a.call(t, http.MethodGet, "/apis/networking.k8s.io/v1/ipaddresses", "", "application/json")
			if err := json.Unmarshal([]byte(body), &left); err != nil ||
				len(left.Items) > 0 && !*askReal { // which has one itself
				t.Errorf("addresses are not given back: %s (%v)", body, err)
			}
		})
	}
}

// startWithRanges starts a server whose Services have addresses of the ranges, and returns who asks it.
func startWithRanges(t *testing.T, texts []string) asker {
	t.Helper()
	var ranges []netip.Prefix
	for _, text := range texts {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	a := recordedServer(t, func(c *assemble.Config) {
		c.Parts.Authorizer = always.Allow{}
		addresses, err := serviceip.New(
			serviceip.Config{Stores: c.Catalog, Storage: c.Storage, Ranges: ranges, FirstNodePort: 30000,
				LastNodePort: 32767, Random: rand.New(rand.NewPCG(1, 2)), Now: time.Now,
				Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		services := c.Parts.Behaviours[corev1.Resource("services")]
		services.Hook = addresses
		c.Parts.Behaviours[corev1.Resource("services")] = services
	}, "--service-cluster-ip-range="+strings.Join(texts, ","), "--advertise-address="+advertised(ranges[0]))("admin")
	cidr, err := json.Marshal(
		networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: serviceip.DefaultCIDR},
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: texts}})
	if err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{"/apis/networking.k8s.io/v1/servicecidrs": string(cidr),
		"/api/v1/namespaces": `{"metadata":{"name":"default"}}`} {
		if code, _, answer := a.call(t, http.MethodPost, path, body, "application/json"); code != http.StatusCreated &&
			code != http.StatusConflict {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
	}
	return a
}

// advertised is an address of a server whose first range is this one: it must be of its family.
func advertised(first netip.Prefix) string {
	if first.Addr().Is6() {
		return "2001:db8::1"
	}
	return "192.0.2.1"
}

// familiesIn is an answer as it is recorded: the message, or the addresses, families and policy of the Service.
// Addresses that the server chose are their families.
func familiesIn(t *testing.T, code int, body string) string {
	t.Helper()
	var answer struct {
		Kind, Message string
		Spec          corev1.ServiceSpec
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	said := answer.Message
	if answer.Kind != "Status" {
		policy := ""
		if p := answer.Spec.IPFamilyPolicy; p != nil {
			policy = string(*p)
		}
		said = fmt.Sprintf("%s %v %v %s", answer.Spec.ClusterIP, answer.Spec.ClusterIPs, answer.Spec.IPFamilies, policy)
	}
	said = serviceAddress.ReplaceAllStringFunc(said, func(ip string) string {
		switch {
		case chosenAddresses[ip]:
			return ip
		case strings.Contains(ip, ":"):
			return "IPv6"
		}
		return "IPv4"
	})
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, said))
}
