package devicetainteviction

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/controller"
)

// pool names a pool of devices: its name is unique only within its driver.
type pool struct{ driver, name string }

// String is the pool as the value of an index; neither part contains a space.
func (p pool) String() string { return p.driver + " " + p.name }

// poolOf is the pool that a slice is a part of.
func poolOf(s *resourcev1.ResourceSlice) pool { return pool{s.Spec.Driver, s.Spec.Pool.Name} }

// pools finds slices by their pool, and claims by the pools that their allocated devices belong to.
type pools struct {
	slices controller.Index[*resourcev1.ResourceSlice]
	claims controller.Index[*resourcev1.ResourceClaim]
}

func newPools(all *controller.Informer[*resourcev1.ResourceSlice],
	claims *controller.Informer[*resourcev1.ResourceClaim]) pools {
	return pools{
		slices: controller.NewIndex(all, "pool", func(s *resourcev1.ResourceSlice) []string {
			return []string{poolOf(s).String()}
		}),
		claims: controller.NewIndex(claims, "pool", func(claim *resourcev1.ResourceClaim) []string {
			a := claim.Status.Allocation
			if a == nil {
				return nil
			}
			at := make([]string, 0, len(a.Devices.Results))
			for _, r := range a.Devices.Results {
				at = append(at, pool{r.Driver, r.Pool}.String())
			}
			slices.Sort(at)
			return slices.Compact(at)
		}),
	}
}

// slicesOf returns the cached slices of a pool, of all generations.
func (x pools) slicesOf(p pool) []*resourcev1.ResourceSlice { return x.slices.At(p.String()) }

// claimsOn returns the cached claims that have devices of a pool.
func (x pools) claimsOn(p pool) []*resourcev1.ResourceClaim { return x.claims.At(p.String()) }
