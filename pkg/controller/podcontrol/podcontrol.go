// Package podcontrol creates and deletes the pods of a workload, as its controller has decided.
package podcontrol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

// Control creates and deletes the pods of owners. What it sends it expects to see, and each pod is an event of its
// owner's.
type Control struct {
	Pods   *apiclient.Resource[*corev1.Pod]
	Expect *owned.Expectations
	Events record.EventRecorder
	// Words are the events; nil is PlainWords.
	Words func(verb Verb, owner apiclient.Object, pod string, err error) Words
}

// Verb is what a Control does to a pod.
type Verb string

// The verbs, as events spell them.
const (
	VerbCreate Verb = "Create"
	VerbDelete Verb = "Delete"
)

// Words are the reason and the message of an event; without a reason there is none.
type Words struct{ Reason, Message string }

// PlainWords are the events that most owners record about a pod that they created or deleted (err is nil), or failed
// to.
func PlainWords(verb Verb, _ apiclient.Object, pod string, err error) Words {
	root := strings.TrimSuffix(string(verb), "e")
	if err != nil {
		return Words{"Failed" + string(verb), fmt.Sprintf("Error %sing: %v", strings.ToLower(root), err)}
	}
	return Words{"Successful" + string(verb), fmt.Sprintf("%sed pod: %s", root, pod)}
}

// say records what came of a verb.
func (c Control) say(verb Verb, owner apiclient.Object, pod string, err error) {
	words := c.Words
	if words == nil {
		words = PlainWords
	}
	kind := corev1.EventTypeNormal
	if err != nil {
		kind = corev1.EventTypeWarning
	}
	if w := words(verb, owner, pod, err); w.Reason != "" {
		c.Events.Event(owner, kind, w.Reason, w.Message)
	}
}

// Change creates the pods of create, which may repeat one pod without a name, slowly at first, and deletes the victims
// all at once. It returns the first error of either.
func (c Control) Change(ctx context.Context, owner apiclient.Object, create, victims []*corev1.Pod) error {
	uids := make([]types.UID, len(victims))
	for i, p := range victims {
		uids[i] = p.UID
	}
	c.Expect.Expect(owner.GetUID(), len(create), uids...)
	called, createErr := slowStart(len(create), func(i int) error { return c.create(ctx, owner, create[i]) })
	c.Expect.Created(owner.GetUID(), len(create)-called)
	if errors.Is(createErr, errEnding) {
		createErr = nil
	}
	var failed atomic.Bool
	deleteErr := Together(len(victims), func(i int) error { return c.delete(ctx, owner, victims[i], &failed) })
	return errors.Join(createErr, deleteErr)
}

// errEnding stops a batch of creations in a namespace that is ending.
var errEnding = errors.New("the namespace is ending")

// create creates one pod. One that is refused because the namespace is ending stays expected, so that the owner, which
// is about to go too, does not try again at every event.
func (c Control) create(ctx context.Context, owner apiclient.Object, pod *corev1.Pod) error {
	made, err := c.Pods.Create(ctx, pod.DeepCopy()) // the encoder writes into what it encodes
	if controller.NamespaceEnding(err) {
		return errEnding
	}
	if err != nil {
		c.Expect.Created(owner.GetUID(), 1)
		c.say(VerbCreate, owner, pod.Name, err)
		return err
	}
	c.Expect.Made(owner.GetUID(), made.ResourceVersion)
	c.say(VerbCreate, owner, made.Name, nil)
	return nil
}

// delete deletes one pod. Of several failures only the first is an event.
func (c Control) delete(ctx context.Context, owner apiclient.Object, p *corev1.Pod, failed *atomic.Bool) error {
	err := c.Pods.Delete(ctx, p.Namespace, p.Name, p.UID)
	if err == nil {
		c.say(VerbDelete, owner, p.Name, nil)
		return nil
	}
	c.Expect.Deleted(owner.GetUID(), p.UID)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if !failed.Swap(true) {
		c.say(VerbDelete, owner, p.Name, err)
	}
	return err
}
