// Package image parses the names of images, and holds what follows from a name alone.
package image

import (
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// PullPolicy returns the pull policy that an image without one gets: Always for the tag latest, given or implied,
// because what that tag stands for changes; IfNotPresent for every other, and for what is no image's name, which
// validation leaves alone.
func PullPolicy(image string) corev1.PullPolicy {
	// Another tag, without a digest behind it, decides alone: most images have one, and parsing costs more than all
	// other defaults.
	last := image[strings.LastIndexByte(image, '/')+1:]
	if _, tag, tagged := strings.Cut(last, ":"); tagged && tag != "latest" && !strings.Contains(tag, "@") {
		return corev1.PullIfNotPresent
	}
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(ref).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
