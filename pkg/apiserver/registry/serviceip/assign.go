package serviceip

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodePorts gives the service its node ports, all by one write; by none if it has them already.
//
// The first try works on a set in which every port is taken: it succeeds only if the service needs no other port than
// it has. Most updates need none, and do not touch the shared object.
func (t *taking) nodePorts(ctx context.Context) error {
	p := t.a.ports
	full := p.empty()
	full.used.Sub(new(big.Int).Lsh(big.NewInt(1), uint(full.size)), big.NewInt(1))
	given := assignment{isNew: t.isNew, had: t.had.ports, pool: p, taken: full}
	if given.all(t.svc) != nil {
		try := func(taken *numbers) error {
			given = assignment{isNew: t.isNew, had: t.had.ports, pool: p, taken: taken, random: p.random}
			return given.all(t.svc)
		}
		reserve := p.change
		if t.dryRun {
			reserve = p.look
		}
		if err := reserve(ctx, try); err != nil {
			return err
		}
	}
	t.got.ports = given.got
	t.svc.Spec.Ports, t.svc.Spec.HealthCheckNodePort = given.ports, given.health
	return nil
}

// assignment is the choice of one service's node ports.
type assignment struct {
	isNew  bool
	had    []int
	pool   *nodePorts
	taken  *numbers
	random *rand.Rand // nil: nothing is free
	// ports are the service's with their node ports, health is its healthCheckNodePort, got are the node ports that it
	// had not.
	ports  []corev1.ServicePort
	health int32
	got    []int
}

// all fills in ports, health and got. It leaves svc as it is: nodePorts.change may call it several times, each time
// with a fresh assignment and another set of taken ports.
func (s *assignment) all(svc *corev1.Service) error {
	s.ports, s.health = slices.Clone(svc.Spec.Ports), svc.Spec.HealthCheckNodePort
	each := s.each
	if s.isNew {
		each = s.eachOfNew
	}
	if err := each(svc); err != nil {
		return err
	}
	if needsHealthPort(svc) {
		return s.healthPort()
	}
	return nil
}

// eachOfNew gives each port of a new service its node port. Ports of one number share the first that is chosen for any
// of them, unless another is chosen for one itself; ports of different numbers share none, not even for different
// protocols.
func (s *assignment) eachOfNew(svc *corev1.Service) error {
	shared := map[int32]int32{} // port → node port
	for i := range s.ports {
		p := &s.ports[i]
		n, ok := shared[p.Port]
		switch {
		case p.NodePort == 0 && !needsPorts(svc):
			continue
		case ok && (p.NodePort == 0 || p.NodePort == n):
			p.NodePort = n
			continue
		case !ok && p.NodePort == 0:
			p.NodePort = s.chosenFor(p.Port)
		}
		if p.NodePort == 0 {
			if p.NodePort, ok = s.next(); !ok {
				return errNoNodePort()
			}
		} else if err := s.another(int(p.NodePort)); err != nil {
			return invalidNodePort(svc, i, p.NodePort, err)
		}
		if shared[p.Port] == 0 {
			shared[p.Port] = p.NodePort
		}
	}
	return nil
}

// chosenFor is the first node port that is chosen for a port of this number; 0 if none is.
func (s *assignment) chosenFor(number int32) int32 {
	for _, p := range s.ports {
		if p.Port == number && p.NodePort != 0 {
			return p.NodePort
		}
	}
	return 0
}

// another takes a node port that no port of the service has got.
func (s *assignment) another(n int) error {
	if slices.Contains(s.got, n) {
		return errPortTaken
	}
	return s.port(n)
}

func invalidNodePort(svc *corev1.Service, i int, n int32, err error) error {
	return invalid(svc, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), n, err.Error()))
}

func errNoNodePort() error {
	return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", errFull))
}

// each gives each port of a service that changes its node port. Those that are chosen may be the same for different
// protocols; of the others each is given one of its own.
func (s *assignment) each(svc *corev1.Service) error {
	type use struct {
		port     int32
		protocol corev1.Protocol
	}
	used := map[use]bool{}
	for i, p := range s.ports {
		if p.NodePort == 0 {
			continue
		}
		err := s.port(int(p.NodePort))
		if key := (use{p.NodePort, p.Protocol}); err == nil && used[key] {
			err = errPortTaken
		} else {
			used[key] = true
		}
		if err != nil {
			return invalidNodePort(svc, i, p.NodePort, err)
		}
	}
	for i := range s.ports {
		p := &s.ports[i]
		if p.NodePort != 0 || !needsPorts(svc) {
			continue
		}
		n, ok := s.next()
		if !ok {
			return errNoNodePort()
		}
		p.NodePort = n
	}
	return nil
}

// port takes a node port that the client chose.
func (s *assignment) port(n int) error {
	if slices.Contains(s.had, n) || slices.Contains(s.got, n) {
		return nil
	}
	if !s.pool.contains(n) {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d", s.pool.first,
			s.pool.last)
	}
	if !s.taken.take(n - s.pool.first) {
		return errPortTaken
	}
	s.got = append(s.got, n)
	return nil
}

// next takes any node port.
func (s *assignment) next() (int32, bool) {
	if s.random == nil {
		return 0, false
	}
	n, ok := s.taken.next(s.random)
	if ok {
		s.got = append(s.got, s.pool.first+n)
	}
	return int32(s.pool.first + n), ok
}

func (s *assignment) healthPort() error {
	if s.health != 0 {
		if err := s.port(int(s.health)); err != nil {
			return apierrors.NewInternalError(
				fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", s.health, err))
		}
		return nil
	}
	n, ok := s.next()
	if !ok {
		return apierrors.NewInternalError(
			fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", s.health, errFull))
	}
	s.health = n
	return nil
}
