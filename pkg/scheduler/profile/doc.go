// Package profile runs the plug-ins of one scheduler name.
//
// New puts plug-ins into the extension points that they implement. The Run methods call them in order and name the
// plug-in in every status. Class and Alone say which results may be kept from pod to pod, by what plug-ins declare.
package profile
