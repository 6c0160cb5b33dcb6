package manifests

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/admissionregistration"
)

// alone refuses an object that depends on objects of the API: they may be missing, and clients can change them.
func alone(file string, obj runtime.Object) error {
	const param = "spec.paramKind is not supported for static manifests"
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		if o.Spec.ParamKind != nil {
			return fmt.Errorf("ValidatingAdmissionPolicy %q: %s", o.Name, param)
		}
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		if o.Spec.ParamKind != nil {
			return fmt.Errorf("MutatingAdmissionPolicy %q: %s", o.Name, param)
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return ofFiles(o.Name, o.Spec.PolicyName, o.Spec.ParamRef)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return ofFiles(o.Name, o.Spec.PolicyName, o.Spec.ParamRef)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			if err := reached(file, o.Name, o.Webhooks[i].Name, &o.Webhooks[i].ClientConfig); err != nil {
				return err
			}
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			if err := reached(file, o.Name, o.Webhooks[i].Name, &o.Webhooks[i].ClientConfig); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofFiles refuses a binding with parameters, and one whose policy cannot come from a file.
func ofFiles(name, policy string, ref *admissionregistrationv1.ParamRef) error {
	switch {
	case ref != nil:
		return fmt.Errorf("binding %q: spec.paramRef is not supported for static manifests", name)
	case !strings.HasSuffix(policy, admissionregistration.StaticSuffix):
		return fmt.Errorf("binding %q: spec.policyName %q must end with %q", name, policy,
			admissionregistration.StaticSuffix)
	}
	return nil
}

// reached refuses a webhook that is reached by a Service.
func reached(file, configuration, webhook string, c *admissionregistrationv1.WebhookClientConfig) error {
	if c.Service == nil {
		return nil
	}
	return fmt.Errorf("webhook %q in %q (file %q): clientConfig.service is not supported for static manifests; use clientConfig.url instead",
		webhook, configuration, file)
}

// bound refuses bindings of policies that no file has.
func bound(all map[string]*object) error {
	policies := map[string]bool{}
	for _, o := range all {
		switch o.obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicy:
			policies[o.name] = true
		}
	}
	for _, o := range sorted(all) {
		var policy string
		switch b := o.obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			policy = b.Spec.PolicyName
		case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			policy = b.Spec.PolicyName
		default:
			continue
		}
		if !policies[policy] {
			return fmt.Errorf("binding %q references policy %q which does not exist in the manifest directory", o.name,
				policy)
		}
	}
	return nil
}
