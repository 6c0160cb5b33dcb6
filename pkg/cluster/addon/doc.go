// Package addon installs the objects of a cluster's add-ons.
//
// It creates what is missing and changes nothing that is there: objects of add-ons belong to the user once they exist.
package addon
