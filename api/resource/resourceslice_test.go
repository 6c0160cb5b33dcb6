package resource

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestSlices: what kube-apiserver 1.36.3 says is wrong with the same slices; LABEL stands for the rule of such names.
func TestSlices(t *testing.T) {
	t.Parallel()
	const set, consumes = `{"name":"s","counters":{"c":{"value":"1"}}}`,
		`{"counterSet":"s","counters":{"c":{"value":"1"}}}`
	const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	const without = "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	const node, each = `"nodeName":"n",`, `"perDeviceNodeSelection":true,`
	device := func(fields string) string { return `"devices":[{"name":"d",` + fields + `}]` }
	policy := func(p string) string {
		return node + device(`"allowMultipleAllocations":true,"capacity":{"m":{"value":"9","requestPolicy":`+p+`}}`)
	}
	const m = "spec.devices[0].capacity[m].requestPolicy"
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"counters": {node + `"sharedCounters":[` + set + `]`, nil},
		"counters and devices": {node + `"sharedCounters":[` + set + `],"devices":[{"name":"d"}]`,
			[]string{"spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed"}},
		"set without counters": {node + `"sharedCounters":[{"name":"s"}]`,
			[]string{"spec.sharedCounters[0].counters: Required value"}},
		"set twice": {node + `"sharedCounters":[` + set + `,` + set + `]`,
			[]string{`spec.sharedCounters[1]: Duplicate value: "s"`}},
		"bad names": {node + `"sharedCounters":[{"name":"S_","counters":{"C_":{"value":"1"}}}]`,
			[]string{`spec.sharedCounters[0].name: Invalid value: "S_": LABEL`,
				`spec.sharedCounters[0].counters: Invalid value: "C_": LABEL`}},
		"no names": {node + `"sharedCounters":[{}]`,
			[]string{"spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value"}},
		"nine sets": {node + `"sharedCounters":[` + strings.Repeat(set+",", 8) + set + `]`,
			[]string{"spec.sharedCounters: Too many: 9: must have at most 8 items"}},

		"consumption": {node + device(`"consumesCounters":[`+consumes+`]`), nil},
		"consumption without counters": {node + device(`"consumesCounters":[{"counterSet":"S_"}]`),
			[]string{`spec.devices[0].consumesCounters[0].counterSet: Invalid value: "S_": LABEL`,
				"spec.devices[0].consumesCounters[0].counters: Required value"}},
		"consumption twice": {node + device(`"consumesCounters":[`+consumes+`,`+consumes+`]`),
			[]string{`spec.devices[0].consumesCounters[1]: Duplicate value: "s"`}},
		"consumption thrice": {node + device(`"consumesCounters":[`+consumes+`,`+consumes+`,`+consumes+`]`),
			[]string{"spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items"}},

		"a device's node": {each + device(`"nodeName":"n"`), nil},
		"a device on no node": {each + device(`"nodeName":""`),
			[]string{`spec.devices[0].nodeName: Invalid value: "": must not be empty`,
				"spec.devices[0]: Required value: " + one}},
		"a device on two": {each + device(`"nodeName":"n","allNodes":true`),
			[]string{"spec.devices[0]: Invalid value: \"{`nodeName`, `allNodes`}\": " + one}},
		"a device not on all": {each + device(`"allNodes":false`),
			[]string{"spec.devices[0].allNodes: Invalid value: false: must be either unset or set to true",
				"spec.devices[0]: Required value: " + one}},
		"a device's node without it": {node + device(`"nodeName":"N_"`), []string{without}},

		"conditions": {node +
			device(`"bindingConditions":["a/B.c"],"bindingFailureConditions":["d"]`), nil},
		"conditions twice": {node +
			device(`"bindingConditions":["a","a"],"bindingFailureConditions":["c","c"]`),
			[]string{`spec.devices[0].bindingConditions[1]: Duplicate value: "a"`,
				`spec.devices[0].bindingFailureConditions[1]: Duplicate value: "c"`}},
		"conditions without a failure": {node + device(`"bindingConditions":["a"]`),
			[]string{"spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"}},
		"failures without a condition": {node + device(`"bindingFailureConditions":["a"]`),
			[]string{"spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions"}},
		"a condition that is both": {node + device(`"bindingConditions":["a"],"bindingFailureConditions":["a"]`),
			[]string{`spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions`}},
		"five conditions": {node +
			device(`"bindingConditions":["a","b","c","d","e"],"bindingFailureConditions":["f"]`),
			[]string{"spec.devices[0].bindingConditions: Too many: 5: must have at most 4 items"}},

		"policy of one": {node + device(`"capacity":{"m":{"value":"9","requestPolicy":{}}}`),
			[]string{m + ": Forbidden: allowMultipleAllocations must be true"}},
		"two policies": {policy(`{"default":"1","validValues":["1"],"validRange":{"min":"1"}}`),
			[]string{m + `: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`}},
		"values": {policy(`{"default":"1","validValues":["1","2"]}`), nil},
		"values without a default": {policy(`{"validValues":["1"]}`),
			[]string{m + ".default: Required value: required when validValues is defined"}},
		"values without the default": {policy(`{"default":"3","validValues":["1"]}`),
			[]string{m + `.validValues: Invalid value: "3": default value is not valid according to the requestPolicy`}},
		"values in disorder": {policy(`{"default":"1","validValues":["1","3","2","3"]}`),
			[]string{m + `.validValues[2]: Invalid value: "2": values must be sorted in ascending order`,
				m + `.validValues[3]: Duplicate value: "3"`}},
		"a value too large": {policy(`{"default":"1","validValues":["1","10"]}`),
			[]string{m + `.validValues[1]: Invalid value: "10": option is larger than capacity value: 9`}},
		"range": {policy(`{"default":"3","validRange":{"min":"1","max":"5","step":"2"}}`), nil},
		"range without a default": {policy(`{"validRange":{"min":"1"}}`),
			[]string{m + ".default: Required value: required when validRange is defined"}},
		"range without a minimum": {policy(`{"default":"1","validRange":{}}`),
			[]string{m + ".validRange.min: Required value: required when validRange is defined"}},
		"range the wrong way round": {policy(`{"default":"1","validRange":{"min":"3","max":"2","step":"2"}}`),
			[]string{m + `.validRange.default: Invalid value: "1": default is less than min: 3`,
				m + `.validRange.max: Invalid value: "3": min is larger than max: 2`,
				m + `.validRange.step: Invalid value: "2": value is not a multiple of a given step (2) from (3)`}},
		"range too large": {policy(`{"default":"1","validRange":{"min":"1","max":"10"}}`),
			[]string{m + `.validRange.max: Invalid value: "10": max is larger than capacity value: 9`}},
		"step too large": {policy(`{"default":"1","validRange":{"min":"1","step":"9"}}`),
			[]string{m + `.validRange.step: Invalid value: "9": one step 10 is larger than capacity value: 9`}},
		// that of 1.36.3 breaks off
		"step of nothing": {policy(`{"default":"1","validRange":{"min":"1","step":"0"}}`),
			[]string{m + `.validRange.step: Invalid value: "0": must be greater than zero`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &resourcev1.ResourceSlice{}
			if err := json.Unmarshal(
				[]byte(`{"spec":{"driver":"d.io","pool":{"name":"p","resourceSliceCount":1},`+c.spec+`}}`), s); err !=
				nil {
				t.Fatal(err)
			}
			var got []string
			for _, err := range validateSlice(s) {
				text, _, _ := strings.Cut(err.Error(), "a lowercase RFC 1123 label must consist")
				if text != err.Error() {
					text += "LABEL"
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// TestDriversInUpperCase: they are taken, with a warning.
func TestDriversInUpperCase(t *testing.T) {
	t.Parallel()
	s := &resourcev1.ResourceSlice{}
	s.Spec.Driver, s.Spec.Pool, s.Spec.AllNodes = "Dra.Example.com",
		resourcev1.ResourcePool{Name: "p", ResourceSliceCount: 1}, new(true)
	if errs := validateSlice(s); len(errs) > 0 {
		t.Error(errs)
	}
	row := resourceSliceRow(time.Now)
	want := []string{`spec.driver: driver names should be lowercase; "Dra.Example.com" contains uppercase characters`}
	if got := row.Strategy.Warnings(s, nil); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
