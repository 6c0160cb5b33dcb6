// Package noderesources fits pods into what nodes have left: Fit refuses nodes without enough of a requested resource
// and prefers those with the most left, BalancedAllocation prefers nodes where CPU and memory are used in equal parts.
package noderesources
