package flowcontrol

import (
	"fmt"
	"math"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Of queues: how many a level may have, and how many bits of a flow's hash dealing a hand of them may take (a hash has
// 64).
const (
	maxQueues      = 10 * 1000 * 1000
	maxEntropyBits = 60
)

func validatePriorityLevel(l *priorityLevel) field.ErrorList {
	path := field.NewPath("spec")
	spec := &l.Spec
	var errs field.ErrorList
	exempt := l.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt
	for _, m := range MandatoryLevels() {
		want, have := m.Spec, *spec
		if m.Name != l.Name {
			continue
		}
		but := ""
		if exempt {
			want.Exempt, have.Exempt, but = nil, nil, " except the 'spec.exempt' field"
		}
		if !apiequality.Semantic.DeepEqual(want, have) {
			errs = append(errs, field.Invalid(path, *spec,
				fmt.Sprintf("spec of '%s'%s must equal the fixed value", l.Name, but)))
		}
	}
	isExempt := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	isLimited := spec.Type == flowcontrolv1.PriorityLevelEnablementLimited
	switch {
	case !isExempt && !isLimited:
		errs = append(errs, validate.OneOf(path.Child("type"), spec.Type, flowcontrolv1.PriorityLevelEnablementExempt,
			flowcontrolv1.PriorityLevelEnablementLimited)...)
	case exempt != isExempt:
		errs = append(errs, field.Invalid(path.Child("type"), spec.Type,
			"must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	errs = append(errs, member(spec.Limited != nil, isLimited, path.Child("limited"))...)
	if spec.Limited != nil {
		errs = append(errs, validateLimited(spec.Limited, isLimited, path.Child("limited"))...)
	}
	if spec.Exempt != nil && !isExempt {
		return append(errs, field.Forbidden(path.Child("exempt"), ""))
	}
	if spec.Exempt != nil {
		errs = append(errs, validateShares(spec.Exempt.NominalConcurrencyShares, spec.Exempt.LendablePercent,
			path.Child("exempt"))...)
	}
	return errs
}

// member checks that a field is there if, and only if, the type names it.
func member(has, named bool, path *field.Path) field.ErrorList {
	switch {
	case has && !named:
		return field.ErrorList{field.Forbidden(path, "")}
	case !has && named:
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func validateShares(shares, lendable *int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if shares != nil && *shares < 0 {
		errs = append(errs, field.Invalid(path.Child("nominalConcurrencyShares"), *shares,
			"must be a non-negative integer"))
	}
	if lendable != nil && (*lendable < 0 || *lendable > 100) {
		errs = append(errs, field.Invalid(path.Child("lendablePercent"), *lendable,
			"must be between 0 and 100, inclusive"))
	}
	return errs
}

// validateLimited checks the form of how a level is limited, and the numbers if it is one that is (named).
func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, named bool, path *field.Path) field.ErrorList {
	response := validateResponse(&l.LimitResponse, named, path.Child("limitResponse"))
	if !named {
		return response
	}
	errs := validateShares(l.NominalConcurrencyShares, l.LendablePercent, path)
	if b := l.BorrowingLimitPercent; b != nil && *b < 0 {
		errs = append(errs, field.Invalid(path.Child("borrowingLimitPercent"), *b,
			"if specified, must be a non-negative integer"))
	}
	return append(errs, response...)
}

func validateResponse(r *flowcontrolv1.LimitResponse, named bool, path *field.Path) field.ErrorList {
	queuing, queues := path.Child("queuing"), r.Type == flowcontrolv1.LimitResponseTypeQueue
	errs := validate.OneOf(path.Child("type"), r.Type, flowcontrolv1.LimitResponseTypeQueue,
		flowcontrolv1.LimitResponseTypeReject)
	errs = append(errs, member(r.Queuing != nil, queues, queuing)...)
	if named && queues && r.Queuing != nil {
		errs = append(errs, validateQueuing(r.Queuing, queuing)...)
	}
	return errs
}

func validateQueuing(q *flowcontrolv1.QueuingConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	queues, hand := path.Child("queues"), path.Child("handSize")
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(path.Child("queueLengthLimit"), q.QueueLengthLimit, "must be positive"))
	}
	switch {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(queues, q.Queues, "must be positive"))
	case q.Queues > maxQueues:
		errs = append(errs, field.Invalid(queues, q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	switch bits := math.Ceil(math.Log2(float64(q.Queues)) * float64(q.HandSize)); {
	case q.HandSize <= 0:
		errs = append(errs, field.Invalid(hand, q.HandSize, "must be positive"))
	case q.HandSize > q.Queues:
		errs = append(errs, field.Invalid(hand, q.HandSize,
			fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	case bits > maxEntropyBits:
		errs = append(errs, field.Invalid(hand, q.HandSize,
			fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues,
				q.HandSize, maxEntropyBits)))
	}
	return errs
}
