package webhooks

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	vocabulary "bonsai/pkg/apiserver/request"
	"bonsai/pkg/trace"
)

// validator is the plug-in ValidatingAdmissionWebhook.
type validator struct{ *plugin }

// Validate implements admission.Validator. It calls all webhooks that the request concerns at once. Of several
// refusals, the client gets the first in the webhooks' order. It waits for all of them, also after a refusal: each call
// has the timeout of its webhook, so the slowest one bounds the wait. Warnings come after the wait, in the webhooks'
// order and on the request's goroutine.
func (p validator) Validate(ctx context.Context, a *admission.Attributes) error {
	all, err := p.hooksFor(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	r := &request{p.plugin, p.Matcher.Request(a)}
	var calls []*validation
	for i := range all {
		c := &all[i]
		if called, err := r.concerns(ctx, c); err != nil {
			return asStatus(err)
		} else if !called {
			continue
		}
		v, err := r.prepare(ctx, c)
		if err != nil {
			return err
		}
		calls = append(calls, &validation{candidate: c, view: v, index: len(calls)})
	}
	defer vocabulary.Wait(ctx, time.Now())
	var wait sync.WaitGroup
	for i, v := range calls {
		if i == len(calls)-1 { // the last one needs no goroutine
			v.run(ctx, r)
			break
		}
		wait.Go(func() { v.run(ctx, r) })
	}
	wait.Wait()
	for _, v := range calls {
		v.tell(ctx, a)
	}
	for _, v := range calls {
		if v.err != nil {
			return v.err
		}
	}
	return nil
}

// prepare encodes the review for the webhook while only one goroutine uses the object. Views keep their JSON. The
// goroutines of Validate only read what prepare has computed; without it two of them could encode the same view at
// once.
func (r *request) prepare(ctx context.Context, c *candidate) (*match.View, error) {
	v, err := r.As(ctx, c.Target)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	for _, s := range []*match.Side{&v.Object, &v.Old} {
		if _, err := s.JSON(); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	if _, err := r.Describe(c.Target); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return v, nil
}

// validation is one call.
type validation struct {
	*candidate
	view  *match.View
	index int // among those that are called
	said  *admissionv1.AdmissionResponse
	err   error
}

func (v *validation) run(ctx context.Context, r *request) {
	begun := time.Now()
	var err error
	if v.said, err = r.ask(ctx, v.candidate, v.view); err == nil && !v.said.Allowed {
		err = denied(v.Name, v.said.Result)
	}
	v.err = r.decide(ctx, v.candidate, begun, err, auditFailedOpenVali+turn(false, v.index))
}

// tell passes on what the webhook has said beside its answer.
func (v *validation) tell(ctx context.Context, a *admission.Attributes) {
	noteSaid(ctx, v.Name, v.said)
	if v.said != nil && a.Warn != nil {
		for _, w := range warnings(v.said.Warnings) {
			a.Warn(w)
		}
	}
}

// ask calls a webhook, unless the request is a dry run that would not be one to it. The refusal of a dry run is not a
// callError: the failure policy cannot let it pass, as the webhook would change something.
func (r *request) ask(ctx context.Context, c *candidate, v *match.View) (*admissionv1.AdmissionResponse, error) {
	if r.A.DryRun {
		switch {
		case c.SideEffects == nil:
			return nil, &callError{c.Name, errors.New("Webhook SideEffects is nil")}
		case !harmless(*c.SideEffects):
			return nil, apierrors.NewBadRequest("admission webhook \"" + c.Name + "\" does not support dry run")
		}
	}
	return r.call(ctx, c, v)
}

// harmless reports whether a webhook promises to change nothing in a dry run.
func harmless(s admissionregistrationv1.SideEffectClass) bool {
	return s == admissionregistrationv1.SideEffectClassNone || s == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

// decide counts how a call ended, and lets the failure policy decide about one that failed. note is the audit
// annotation for one that failed and is ignored. Only a callError is a failure of the webhook. Everything else, such as
// a refusal, goes to the client as it is. An ignored failure still ends a request whose own time is over: the next
// webhook would fail at once for the same reason, and be ignored, too.
func (r *request) decide(ctx context.Context, c *candidate, begun time.Time, err error, note string) error {
	var failed *callError
	ignored := errors.As(err, &failed) && c.ignores()
	r.metrics.called(c.Name, r.kind, string(r.A.Operation), time.Since(begun), err, ignored)
	if trace.Recording(ctx) {
		trace.Past(ctx, "admission.webhook."+r.kind, begun, time.Now(), spanError(err, failed),
			attribute.String("bonsai.webhook.name", c.Name), attribute.Bool("bonsai.webhook.failure_ignored", ignored))
	}
	switch {
	case err == nil:
		return nil
	case ignored:
		vocabulary.Annotate(ctx, note, c.Name)
		r.plugin.Log.Warn("a webhook failed, the request goes on", "webhook", c.Name, "err", failed.err)
		if ctx.Err() != nil {
			return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
		}
		return nil
	case failed != nil:
		r.plugin.Log.Warn("a webhook failed, the request is refused", "webhook", c.Name, "err", failed.err)
		return apierrors.NewInternalError(failed)
	}
	return err
}

// The texts that spans have for a call that did not admit the request. They are fixed, since a webhook's answer may
// repeat what the client sent.
var (
	errRefused = errors.New("the webhook refused the request")
	errFailed  = errors.New("the webhook could not be called, or gave no usable answer")
)

// spanError returns the text that the span of a call has for its error. failed is the failure, nil for none.
func spanError(err error, failed *callError) error {
	switch {
	case err == nil:
		return nil
	case failed != nil:
		return errFailed
	}
	return errRefused
}

// asStatus makes a Status of an error that has none.
func asStatus(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewInternalError(err)
}
