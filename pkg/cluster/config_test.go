package cluster

import (
	"testing"

	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/localimage"
)

func TestAddonsFillIn(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.Addons = manifest("kind: ConfigMap\nmetadata: {name: x}\ndata: {ip: $DNS_IP, image: '$COREDNS_IMAGE'}\n---\n# nothing\n---\nkind: Service\nmetadata: {name: web}\n")
	objects, err := addon.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 || objects[1].GetName() != "web" {
		t.Fatalf("%v", objects[1])
	}
	data, _ := objects[0].Object["data"].(map[string]any)
	if data["ip"] != "10.96.0.10" || data["image"] != localimage.CoreDNS {
		t.Errorf("%v", data)
	}
}
