package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
)

// garbageOptions are the flags of garbage collection. Those of containers exist only as flags, not in the file.
type garbageOptions struct {
	imageHigh, imageLow int32
	imageMinAge         time.Duration
	containers          struct {
		minAge              time.Duration
		perContainer, total int32
	}
}

func (o *garbageOptions) addFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.imageHigh, "image-gc-high-threshold", 85,
		"The percent of disk usage after which image garbage collection is always run. Values must be within the range [0, 100], To disable image garbage collection, set to 100.")
	fs.Int32Var(&o.imageLow, "image-gc-low-threshold", 80,
		"The percent of disk usage before which image garbage collection is never run. Lowest disk usage to garbage collect to. Values must be within the range [0, 100] and must be less than that of --image-gc-high-threshold.")
	fs.DurationVar(&o.imageMinAge, "minimum-image-ttl-duration", 2*time.Minute,
		"Minimum age for an unused image before it is garbage collected.  Examples: '300ms', '10s' or '2h45m'.")
	fs.DurationVar(&o.containers.minAge, "minimum-container-ttl-duration", 0,
		"Minimum age for a finished container before it is garbage collected.  Examples: '300ms', '10s' or '2h45m'")
	fs.Int32Var(&o.containers.perContainer, "maximum-dead-containers-per-container", 1,
		"Maximum number of old instances to retain per container.  Each container takes up some disk space.")
	fs.Int32Var(&o.containers.total, "maximum-dead-containers", -1,
		"Maximum number of old instances of containers to retain globally.  Each container takes up some disk space. To disable, set to a negative number.")
}

// merge lets flags that are given win over the file, and fills in the defaults.
//
// A flag wins only if it was given. Otherwise its default fills a field that the file leaves out, so flag and field
// have one default.
func (o *garbageOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	if fs.Changed("image-gc-high-threshold") || c.ImageGCHighThresholdPercent == nil {
		c.ImageGCHighThresholdPercent = &o.imageHigh
	}
	if fs.Changed("image-gc-low-threshold") || c.ImageGCLowThresholdPercent == nil {
		c.ImageGCLowThresholdPercent = &o.imageLow
	}
	if fs.Changed("minimum-image-ttl-duration") || c.ImageMinimumGCAge.Duration == 0 {
		c.ImageMinimumGCAge.Duration = o.imageMinAge
	}
}

// imagePolicy returns when unused images are removed. The fields are set, because merge has run.
func imagePolicy(c *kubeletconfig.KubeletConfiguration) images.Policy {
	return images.Policy{High: int(*c.ImageGCHighThresholdPercent), Low: int(*c.ImageGCLowThresholdPercent),
		MinAge: c.ImageMinimumGCAge.Duration, MaxAge: c.ImageMaximumGCAge.Duration}
}

// checkImages refuses thresholds out of range, and a low threshold that is not below the high one: collection would
// start and free nothing. The messages are upstream's.
func checkImages(p images.Policy) error {
	var errs []error
	for _, x := range []struct {
		what    string
		percent int
	}{{"imageGCHighThresholdPercent (--image-gc-high-threshold)", p.High},
		{"imageGCLowThresholdPercent (--image-gc-low-threshold)", p.Low}} {
		if x.percent < 0 || x.percent > 100 {
			errs = append(errs, fmt.Errorf("%s %d must be between 0 and 100, inclusive", x.what, x.percent))
		}
	}
	if p.Low >= p.High {
		errs = append(errs, fmt.Errorf(
			"imageGCLowThresholdPercent (--image-gc-low-threshold) %d must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %d", p.Low, p.High))
	}
	if p.MaxAge != 0 && p.MaxAge <= p.MinAge {
		errs = append(errs, fmt.Errorf("imageMaximumGCAge %v must be greater than imageMinimumGCAge %v", p.MaxAge,
			p.MinAge))
	}
	return errors.Join(errs...)
}

// containerPolicy returns how many dead containers stay. A negative total means no bound.
func (o *garbageOptions) containerPolicy() housekeeping.ContainerPolicy {
	return housekeeping.ContainerPolicy{MinAge: o.containers.minAge, PerContainer: int(o.containers.perContainer),
		Total: int(o.containers.total)}
}
