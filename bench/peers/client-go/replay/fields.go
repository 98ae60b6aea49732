package main

import (
	"encoding/json"
	"fmt"
)

var leaf = map[string]any{}

// listKeys are the fields that identify an element of a list, by the list's name. Other lists are owned as a whole.
var listKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "volumes": {"name"}, "env": {"name"}, "imagePullSecrets": {"name"},
	"ports": {"containerPort", "protocol"}, "volumeMounts": {"mountPath"}, "conditions": {"type"}, "podIPs": {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
}

// fieldsOf is the set of fields that one manager owns, as a server writes it.
func fieldsOf(object map[string]any, isTop bool) map[string]any {
	fields := map[string]any{}
	if !isTop {
		fields["."] = leaf
	}
	for name, value := range object {
		fields["f:"+name] = fieldsOfValue(name, value)
	}
	return fields
}

func fieldsOfValue(name string, value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return fieldsOf(value, false)
	case []any:
		keys, ok := listKeys[name]
		if !ok {
			return leaf
		}
		fields := map[string]any{}
		if name != "containers" && name != "initContainers" {
			fields["."] = leaf
		}
		for _, element := range value {
			if element, ok := element.(map[string]any); ok {
				fields["k:"+keyOf(element, keys)] = fieldsOf(element, false)
			}
		}
		return fields
	default:
		return leaf
	}
}

func keyOf(element map[string]any, keys []string) string {
	key := "{"
	for i, name := range keys {
		if i > 0 {
			key += ","
		}
		switch value := element[name].(type) {
		case string:
			key += fmt.Sprintf("%q:%q", name, value)
		default:
			key += fmt.Sprintf("%q:%v", name, value)
		}
	}
	return key + "}"
}

// setOf is the set of the members of a map, without one that another manager owns.
func setOf(members map[string]string, without string) map[string]any {
	fields := map[string]any{".": leaf}
	for name := range members {
		if name != without {
			fields["f:"+name] = leaf
		}
	}
	return fields
}

func asMap(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	err = json.Unmarshal(text, &fields)
	return fields, err
}
