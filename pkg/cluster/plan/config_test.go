package plan

import (
	"fmt"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"default", func(*Config) {}, nil},
		{"no nodes", func(c *Config) { c.Nodes = nil }, []string{"--nodes"}},
		{"ten nodes", func(c *Config) { c.Nodes = NodesUpTo(10) }, []string{"--nodes"}},
		{"relative directory", func(c *Config) { c.DataDir = "data" }, []string{"--data-dir"}},
		{"directory with a colon", func(c *Config) {
			c.DataDir = "/data:1"
		}, []string{"--data-dir: must have no colon"}},
		{"directory with a comma", func(c *Config) {
			c.DataDir = "/data,1"
		}, []string{"--data-dir: must have no colon"}},
		{"the root directory", func(c *Config) { c.DataDir = "/." }, []string{"--data-dir"}},
		{"a name", func(c *Config) { c.Name = "My_Cluster" }, []string{"--name"}},
		{"a long name", func(c *Config) { c.Name = strings.Repeat("a", 21) }, []string{"--name"}},
		{"a port of its own", func(c *Config) {
			*c = publishing(*c, "2379:30080")
		}, []string{"--port: 127.0.0.1:2379 is taken by the cluster itself"}},
		{"a port twice", func(c *Config) {
			*c = publishing(*c, "8080:30080")
			c.PortMappings = append(c.PortMappings, c.PortMappings...)
		}, []string{"--port: 127.0.0.1:8080 is given twice"}},
		{"a mirror", func(c *Config) { c.Mirrors = []Mirror{{EveryRegistry, "ten"}} }, []string{"--registry-mirror"}},
		{"all wrong", func(c *Config) {
			c.Nodes, c.DataDir, c.Ports.API = nil, "", 70000
		}, []string{"--nodes", "--data-dir", "--api-port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Default("/data", "/bin")
			c.change(&config)
			err := config.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error %v", err)
			}
			for _, flag := range c.want {
				if !strings.Contains(err.Error(), flag) {
					t.Errorf("%v does not name %s", err, flag)
				}
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	for got, want := range map[string]string{
		c.Networks().HostIP().String(): "10.77.0.1", c.NodeIP(Node{Number: 1}).String(): "10.77.0.11",
		c.NodeIP(Node{Number: 9}).String(): "10.77.0.19",
		c.Networks().ServiceIP().String():  "10.96.0.1", c.Networks().DNSIP().String(): "10.96.0.10",
		c.Server(): "https://10.77.0.1:6443",
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestWithNodes: nodes that stay keep what they are, new ones get the lowest numbers that are free.
func TestWithNodes(t *testing.T) {
	t.Parallel()
	c := Default("/data", "/bin")
	c.Nodes = []Node{{Number: 1, Labels: map[string]string{"a": "b"}}, {Number: 3}}
	var names []string
	with := func(n int) []Node {
		t.Helper()
		w, err := c.WithNodes(n)
		if err != nil {
			t.Fatal(err)
		}
		return w.Nodes
	}
	for _, n := range with(4) {
		names = append(names, n.Name()+n.Labels["a"])
	}
	if got := strings.Join(names, " "); got != "n1b n3 n2 n4" {
		t.Error(got)
	}
	if got := with(1); len(got) != 1 || got[0].Labels["a"] != "b" {
		t.Errorf("%+v", got)
	}
	for _, n := range []int{-1, 0, MaxNodes + 1} {
		if _, err := c.WithNodes(n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("not %d", n)) {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}
