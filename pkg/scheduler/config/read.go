// Package config reads the configuration file of a scheduler: a KubeSchedulerConfiguration
// (kubescheduler.config.k8s.io/v1). Unknown fields and values out of range are errors. Fields that tune
// what this scheduler does not do, such as percentageOfNodesToScore (all nodes are scored) or parallelism, are checked,
// and have no effect (Idle names them for the log).
//
// Read decodes and sets the defaults, Validate checks the result; the command calls them once, before the scheduler
// starts.
package config

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// DefaultSchedulerName is the name of a profile that is alone and says none, and of pods that say none.
const DefaultSchedulerName = "default-scheduler"

// Defaults of what is used.
const (
	defaultInitialBackoff, defaultMaxBackoff = 1, 10 // seconds
	defaultParallelism                       = 16
)

// Default is what holds without a file.
func Default() *configv1.KubeSchedulerConfiguration {
	c := &configv1.KubeSchedulerConfiguration{}
	setDefaults(c)
	return c
}

// Read reads the file, in YAML or JSON. Unknown and doubled fields are errors, in the arguments of known plug-ins too.
func Read(path string) (*configv1.KubeSchedulerConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// decode is Read for the content of a file. Its scheme is its own: the types of the configuration are registered
// nowhere else, and strict decoding is only wanted here.
func decode(data []byte) (*configv1.KubeSchedulerConfiguration, error) {
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	decoder := codecs.UniversalDeserializer()
	obj, gvk, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	c, ok := obj.(*configv1.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("couldn't decode as KubeSchedulerConfiguration, got %s: ", gvk)
	}
	// The arguments of plug-ins are objects within the object, which the first decoding leaves as bytes.
	if err := c.DecodeNestedObjects(decoder); err != nil {
		return nil, err
	}
	setDefaults(c)
	return c, nil
}

// setDefaults fills fields that are not set. Afterwards no pointer that is read later is nil: Validate and the command
// rely on it. A field that is set stays, also if it is wrong.
func setDefaults(c *configv1.KubeSchedulerConfiguration) {
	setDefault(&c.Parallelism, defaultParallelism)
	setDefault(&c.PercentageOfNodesToScore, 0)
	setDefault(&c.PodInitialBackoffSeconds, defaultInitialBackoff)
	setDefault(&c.PodMaxBackoffSeconds, defaultMaxBackoff)
	if len(c.Profiles) == 0 {
		c.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	if len(c.Profiles) == 1 {
		setDefault(&c.Profiles[0].SchedulerName, DefaultSchedulerName)
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		setDefault(&p.SchedulerName, "")
		if p.Plugins == nil {
			p.Plugins = &configv1.Plugins{}
		}
		for j := range p.PluginConfig {
			setArgs(p.PluginConfig[j].Args.Object)
		}
	}
}

// setArgs gives arguments their defaults that zero is not.
//
// The values are those that the API documents.
func setArgs(args runtime.Object) {
	switch a := args.(type) {
	case *configv1.DefaultPreemptionArgs:
		setDefault(&a.MinCandidateNodesPercentage, 10)
		setDefault(&a.MinCandidateNodesAbsolute, 100)
	case *configv1.InterPodAffinityArgs:
		setDefault(&a.HardPodAffinityWeight, 1)
	case *configv1.VolumeBindingArgs:
		setDefault(&a.BindTimeoutSeconds, 600)
		if len(a.Shape) == 0 {
			a.Shape = []configv1.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
		}
	case *configv1.DynamicResourcesArgs:
		setDefault(&a.FilterTimeout, metav1.Duration{Duration: 10 * time.Second})
		setDefault(&a.BindingTimeout, metav1.Duration{Duration: 10 * time.Minute})
	case *configv1.PodTopologySpreadArgs:
		if a.DefaultingType == "" {
			a.DefaultingType = configv1.SystemDefaulting
		}
	case *configv1.NodeResourcesFitArgs:
		if a.ScoringStrategy == nil {
			a.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
		}
		a.ScoringStrategy.Resources = weighed(a.ScoringStrategy.Resources)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		a.Resources = weighed(a.Resources)
	}
}

// weighed are CPU and memory where no resources are named; those without a weight count 1.
func weighed(list []configv1.ResourceSpec) []configv1.ResourceSpec {
	if len(list) == 0 {
		return []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	}
	for i := range list {
		if list[i].Weight == 0 {
			list[i].Weight = 1
		}
	}
	return list
}

func setDefault[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}

// Points calls yield with each extension point of p by its name in the file, and its plug-ins.
//
// The names of the file, for messages and for checks of every point; placementGenerate, placementScore and
// podGroupPostFilter are included, so that a plug-in at them is seen.
func Points(p *configv1.Plugins) func(yield func(point string, set configv1.PluginSet) bool) {
	return func(yield func(string, configv1.PluginSet) bool) {
		for _, e := range []struct {
			name string
			set  configv1.PluginSet
		}{
			{"preEnqueue", p.PreEnqueue}, {"queueSort", p.QueueSort}, {"preFilter", p.PreFilter}, {"filter", p.Filter},
			{"postFilter", p.PostFilter},
			{"preScore", p.PreScore}, {"score", p.Score}, {"reserve", p.Reserve}, {"permit", p.Permit},
			{"preBind", p.PreBind}, {"bind", p.Bind},
			{"postBind", p.PostBind}, {"multiPoint", p.MultiPoint}, {"placementGenerate", p.PlacementGenerate},
			{"placementScore", p.PlacementScore}, {"podGroupPostFilter", p.PodGroupPostFilter},
		} {
			if !yield(e.name, e.set) {
				return
			}
		}
	}
}
