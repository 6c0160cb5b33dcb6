package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Member is a member of etcd's cluster, as etcd describes it. One that was added and has not started has no name.
type Member struct {
	ID         string   `json:"ID"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	IsLearner  bool     `json:"isLearner"`
}

const (
	// askPatience bounds one question to an etcd about the members. A change of the members waits for a majority.
	askPatience = 5 * time.Second
	// againAfter is the time between two attempts to add or promote a member.
	againAfter = time.Second
	// startPatience is how long a machine may take between the addition of its member and the start of its etcd. A
	// machine that died in between would keep all others from joining.
	startPatience = 3 * time.Minute
)

// At returns the etcds at these addresses of other machines, to be asked with this machine's certificate.
func At(c plan.Config, peers []plan.Peer) ([]API, error) {
	var all []API
	for _, p := range peers {
		t, err := transport(c, c.Members()[0])
		if err != nil {
			return nil, err
		}
		all = append(all, API{name: "the etcd of " + p.Name, url: "https://" + p.Etcd.String(),
			client: &http.Client{Transport: t}})
	}
	return all, nil
}

// Others returns the etcds of the cluster's other machines.
func Others(c plan.Config) ([]API, error) {
	own := c.Etcd().Name
	return At(c, slices.DeleteFunc(slices.Clone(c.Peers), func(p plan.Peer) bool { return p.Name == own }))
}

// ask calls do with each of the etcds until one has answered, and returns the errors of all if none did.
func ask(ctx context.Context, etcds []API, do func(context.Context, API) error) error {
	if len(etcds) == 0 {
		return errors.New("no etcd of another machine is known")
	}
	var errs []error
	for _, e := range etcds {
		within, cancel := context.WithTimeoutCause(ctx, askPatience,
			errors.New("no answer: a majority of etcd's members may be missing"))
		err := do(within, e)
		if err != nil && within.Err() != nil {
			err = fmt.Errorf("ask %s: %w", e.name, context.Cause(within))
		}
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// list returns the members. A list that is agreed needs a majority; the others' is what the etcd that is asked knows.
func (e API) list(ctx context.Context, agreed bool) ([]Member, error) {
	var answer struct{ Members []Member }
	err := e.call(ctx, "/v3/cluster/member/list", map[string]bool{"linearizable": agreed}, &answer)
	return answer.Members, err
}

// change asks for a change of the members.
func (e API) change(ctx context.Context, what string, in map[string]any) error {
	return e.call(ctx, "/v3/cluster/member/"+what, in, nil)
}

// is reports whether m is the member of that name, or one at that URL that has not started.
func (m Member) is(name, peerURL string) bool {
	return m.Name == name || slices.Contains(m.PeerURLs, peerURL)
}

// Enter adds this machine's etcd, which has no data, to the cluster of the etcds at the other machines. It is a learner
// until Promote, and so no majority waits for it. The result is etcd's --initial-cluster.
//
// A member that this machine had before goes first: its data is lost. etcd takes one learner at a time, so Enter waits
// for the other ones, and removes one that has not started in startPatience: it has no vote and no data. Only ctx
// bounds that.
func Enter(ctx context.Context, c plan.Config) (initial string, err error) {
	etcds, err := Others(c)
	if err != nil {
		return "", err
	}
	name, own := c.Etcd().Name, c.Etcd().PeerURL
	var away unstarted
	last := error(nil)
	err = host.Poll(ctx, againAfter, func() (bool, error) {
		last = ask(ctx, etcds, func(ctx context.Context, e API) error {
			members, err := e.list(ctx, true)
			if err != nil {
				return err
			}
			for _, m := range members {
				if !m.is(name, own) && !away.tooLong(m, time.Now()) {
					continue
				}
				if err := e.change(ctx, "remove", map[string]any{"ID": m.ID}); err != nil {
					return err
				}
			}
			if err := e.change(ctx, "add", map[string]any{"peerURLs": []string{own}, "isLearner": true}); err != nil {
				return err
			}
			if members, err = e.list(ctx, true); err == nil {
				initial = initialCluster(members, name, own)
			}
			return err
		})
		return last == nil, nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return initial, err
}

// unstarted is a learner of another machine that has not started, and since when it is known as such.
type unstarted struct {
	id    string
	since time.Time
}

// tooLong reports whether m is a learner that has not started in startPatience.
func (u *unstarted) tooLong(m Member, now time.Time) bool {
	if !m.IsLearner || m.Name != "" {
		return false
	}
	if u.id != m.ID {
		*u = unstarted{m.ID, now}
	}
	return now.Sub(u.since) >= startPatience
}

// initialCluster returns the members as etcd's flag takes them, this machine's with its name. Others that have not
// started have none yet, and only their URLs count.
func initialCluster(members []Member, name, own string) string {
	var all []string
	for _, m := range members {
		called := m.Name
		switch {
		case slices.Contains(m.PeerURLs, own):
			called = name
		case called == "":
			called = "member-" + m.ID
		}
		for _, url := range m.PeerURLs {
			all = append(all, called+"="+url)
		}
	}
	return strings.Join(all, ",")
}

// Promote makes this machine's etcd a member that votes, once it has the data, and returns when it is one. It asks this
// etcd first: one that votes answers, also when the other machines are gone. A learner answers no such questions, so it
// asks those next. Only ctx bounds it.
func Promote(ctx context.Context, c plan.Config) error {
	etcds, err := Of(c)
	if err != nil {
		return err
	}
	others, err := Others(c)
	if err != nil {
		return err
	}
	etcds = append(etcds, others...)
	name := c.Etcd().Name
	last := error(nil)
	err = host.Poll(ctx, againAfter, func() (bool, error) {
		last = ask(ctx, etcds, func(ctx context.Context, e API) error {
			members, err := e.list(ctx, true)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(members, func(m Member) bool { return m.is(name, c.Etcd().PeerURL) })
			switch {
			case i < 0:
				return fmt.Errorf("etcd has no member %s: it was removed (bonsai down, then join again)", name)
			case !members[i].IsLearner:
				return nil
			}
			return e.change(ctx, "promote", map[string]any{"ID": members[i].ID})
		})
		if last != nil {
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// Announce records in etcd where other machines reach the member of this machine, which runs: that of a cluster that
// was made before others could reach it is on loopback.
func Announce(ctx context.Context, c plan.Config) error {
	etcds, err := Of(c)
	if err != nil {
		return err
	}
	return ask(ctx, etcds, func(ctx context.Context, e API) error {
		members, err := e.list(ctx, true)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Name != c.Etcd().Name || slices.Equal(m.PeerURLs, []string{c.Etcd().PeerURL}) {
				continue
			}
			return e.change(ctx, "update", map[string]any{"ID": m.ID, "peerURLs": []string{c.Etcd().PeerURL}})
		}
		return nil
	})
}

// CheckMajority returns an error unless a majority of etcd's members answers, without which they cannot change.
func CheckMajority(ctx context.Context, c plan.Config) error {
	etcds, err := Others(c)
	if err != nil {
		return err
	}
	return ask(ctx, etcds, func(ctx context.Context, e API) error {
		_, err := e.list(ctx, true)
		return err
	})
}

// Remove removes the member of that name, if there is one. Another machine's etcd is asked first: this machine's ends
// when it is removed itself, perhaps before it answers.
func Remove(ctx context.Context, c plan.Config, name string) error {
	etcds, err := Others(c)
	if err != nil {
		return err
	}
	own, err := Of(c)
	if err != nil {
		return err
	}
	return ask(ctx, append(etcds, own...), func(ctx context.Context, e API) error {
		members, err := e.list(ctx, true)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
		if i < 0 || len(members) == 1 { // the last one goes with its data
			return nil
		}
		return e.change(ctx, "remove", map[string]any{"ID": members[i].ID})
	})
}

// IsAlone reports whether the etcd of this machine is the only member, and so a majority by itself.
func IsAlone(ctx context.Context, c plan.Config) (bool, error) {
	etcds, err := Of(c)
	if err != nil {
		return false, err
	}
	var members []Member
	err = ask(ctx, etcds, func(ctx context.Context, e API) (err error) {
		members, err = e.list(ctx, true)
		return err
	})
	return err == nil && len(members) == 1 && members[0].Name == c.Etcd().Name, err
}

// State is a member with whether it answers.
type State struct {
	Member
	Err error // nil if it answers
}

// Members returns the members that this machine's etcd knows, with whether each answers. It needs no majority.
func Members(ctx context.Context, c plan.Config) ([]State, error) {
	etcds, err := Of(c)
	if err != nil {
		return nil, err
	}
	var members []Member
	if err := ask(ctx, etcds, func(ctx context.Context, e API) (err error) {
		members, err = e.list(ctx, false)
		return err
	}); err != nil {
		return nil, err
	}
	states, done := make([]State, len(members)), make(chan struct{})
	for i, m := range members {
		go func() {
			states[i] = State{Member: m, Err: answers(ctx, c, m)}
			done <- struct{}{}
		}()
	}
	for range members {
		<-done
	}
	return states, nil
}

// answers returns why a member does not answer.
func answers(ctx context.Context, c plan.Config, m Member) error {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	if len(m.ClientURLs) == 0 {
		return errors.New("has not started")
	}
	t, err := transport(c, c.Members()[0])
	if err != nil {
		return err
	}
	url := m.ClientURLs[0]
	if m.Name == c.Etcd().Name { // by loopback
		own, err := Of(c)
		if err != nil {
			return err
		}
		url = own[0].url
	}
	_, err = API{name: "the etcd of " + m.Name, url: url, client: &http.Client{Transport: t}}.status(ctx)
	return err
}
