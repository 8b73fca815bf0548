// The orchestration package of gophercloud against a service; run by gophercloud.py.
package main

import (
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"reflect"
	"sort"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/buildinfo"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/resourcetypes"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stackevents"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stacks"
	"github.com/gophercloud/gophercloud/openstack/orchestration/v1/stacktemplates"
	"github.com/gophercloud/gophercloud/pagination"
)

var passed, failed int

func check(what string, good bool, detail interface{}) bool {
	if good {
		passed++
	} else {
		failed++
		fmt.Printf("FAILED %s: %v\n", what, detail)
	}
	return good
}

func equal(what string, got, expected interface{}) {
	check(what, reflect.DeepEqual(got, expected), fmt.Sprintf("%#v instead of %#v", got, expected))
}

// good ends the program if a call failed: what follows depends on it.
func good(what string, err error) {
	if !check(what, err == nil, err) {
		finish()
	}
}

func finish() {
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// settled waits for the end of an action.
func settled(c *gophercloud.ServiceClient, name, id, status string) *stacks.RetrievedStack {
	for attempt := 0; ; attempt++ {
		stack, err := stacks.Get(c, name, id).Extract()
		good("show", err)
		if stack.Status == status || attempt > 300 {
			equal("status", stack.Status, status)
			return stack
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func output(stack *stacks.RetrievedStack, name string) interface{} {
	for _, one := range stack.Outputs {
		if one["output_key"] == name {
			return one["output_value"]
		}
	}
	return nil
}

func list(c *gophercloud.ServiceClient, opts stacks.ListOpts) []string {
	pages, err := stacks.List(c, opts).AllPages()
	good("list", err)
	found, err := stacks.ExtractStacks(pages)
	good("a list that can be read", err)
	names := []string{}
	for _, one := range found {
		names = append(names, one.Name)
	}
	return names
}

func life(c *gophercloud.ServiceClient, text []byte) {
	template := new(stacks.Template)
	template.Bin = text
	parameters := map[string]interface{}{"label": "a"}
	preview, err := stacks.Preview(c, stacks.PreviewOpts{Name: "app", Timeout: 5, TemplateOpts: template, Parameters: parameters}).Extract()
	good("preview", err)
	equal("a preview", []interface{}{preview.Name, preview.Parameters["label"], len(preview.Resources)}, []interface{}{"app", "a", 2})
	environment := new(stacks.Environment)
	environment.Bin = []byte("parameters:\n  pin: '99'\n")
	disable := true
	made, err := stacks.Create(c, stacks.CreateOpts{
		Name: "app", TemplateOpts: template, EnvironmentOpts: environment, Parameters: parameters, Timeout: 5,
		DisableRollback: &disable, Tags: []string{"red", "green"},
	}).Extract()
	good("create", err)
	stack := settled(c, "app", made.ID, "CREATE_COMPLETE")
	equal("shown", []interface{}{stack.Name, stack.Description, stack.Timeout, stack.DisableRollback, stack.Tags},
		[]interface{}{"app", "a network and a word", 5, true, []string{"red", "green"}})
	equal("parameters", []string{stack.Parameters["label"], stack.Parameters["pin"]}, []string{"a", "******"})
	check("the time", time.Since(stack.CreationTime) < time.Hour && stack.UpdatedTime.IsZero(), stack.CreationTime)
	equal("an output", output(stack, "name"), "a")
	found, err := stacks.Find(c, "app").Extract()
	good("find", err)
	equal("found by name", found.ID, made.ID)

	equal("listed", list(c, stacks.ListOpts{}), []string{"app"})
	equal("by tag", list(c, stacks.ListOpts{Tags: "red,green"}), []string{"app"})
	equal("without a tag", list(c, stacks.ListOpts{NotTags: "red"}), []string{})
	equal("by status", list(c, stacks.ListOpts{Status: "COMPLETE", SortKey: stacks.SortName, SortDir: stacks.SortAsc}), []string{"app"})
	equal("by name", list(c, stacks.ListOpts{Name: "other"}), []string{})

	resources, err := stackresources.Find(c, "app").Extract()
	good("resources by name", err)
	equal("two resources", len(resources), 2)
	pages, err := stackresources.List(c, "app", made.ID, nil).AllPages()
	good("resources", err)
	resources, err = stackresources.ExtractResources(pages)
	good("resources that can be read", err)
	names := []string{}
	for _, one := range resources {
		names = append(names, one.Name+" "+one.Type+" "+one.Status)
	}
	sort.Strings(names)
	equal("resources", names, []string{"net OS::Neutron::Net CREATE_COMPLETE", "word OS::Heat::RandomString CREATE_COMPLETE"})
	net, err := stackresources.Get(c, "app", made.ID, "net").Extract()
	good("a resource", err)
	equal("a network", []interface{}{net.Attributes["name"], net.PhysicalID}, []interface{}{"a", output(stack, "network")})
	metadata, err := stackresources.Metadata(c, "app", made.ID, "net").Extract()
	good("metadata", err)
	equal("no metadata", len(metadata), 0)

	events, err := stackevents.Find(c, "app").Extract()
	good("events by name", err)
	equal("all events", len(events), 6)
	// AllPages asks for the events after the last one, which Heat refuses with 404 too.
	err = stackevents.ListResourceEvents(c, "app", made.ID, "net", nil).EachPage(func(page pagination.Page) (bool, error) {
		var err error
		events, err = stackevents.ExtractEvents(page)
		return false, err
	})
	good("events of a resource", err)
	equal("two events", len(events), 2)
	event, err := stackevents.Get(c, "app", made.ID, "net", events[0].ID).Extract()
	good("an event", err)
	equal("the event", []string{event.ID, event.ResourceName}, []string{events[0].ID, "net"})

	stored, err := stacktemplates.Get(c, "app", made.ID).Extract()
	good("template", err)
	var content struct{ Resources map[string]interface{} }
	good("a template that can be read", json.Unmarshal(stored, &content))
	equal("the template", len(content.Resources), 2)

	parameters["label"] = "b"
	good("update", stacks.Update(c, "app", made.ID, stacks.UpdateOpts{TemplateOpts: template, Parameters: parameters}).ExtractErr())
	stack = settled(c, "app", made.ID, "UPDATE_COMPLETE")
	equal("updated", []interface{}{output(stack, "name"), stack.UpdatedTime.IsZero()}, []interface{}{"b", false})
	parameters["label"] = "c"
	good("patch", stacks.UpdatePatch(c, "app", made.ID, stacks.UpdateOpts{Parameters: parameters}).ExtractErr())
	for attempt := 0; attempt < 100 && output(stack, "name") != "c"; attempt++ {
		time.Sleep(100 * time.Millisecond)
		stack, err = stacks.Get(c, "app", made.ID).Extract()
		good("show again", err)
	}
	settled(c, "app", made.ID, "UPDATE_COMPLETE")
	equal("patched", output(stack, "name"), "c")
	mark := stackresources.MarkUnhealthyOpts{MarkUnhealthy: true, ResourceStatusReason: "broken"}
	good("mark", stackresources.MarkUnhealthy(c, "app", made.ID, "word", mark).ExtractErr())

	abandoned, err := stacks.Abandon(c, "app", made.ID).Extract()
	good("abandon", err)
	equal("abandoned", []interface{}{abandoned.ID, abandoned.Name, len(abandoned.Resources)}, []interface{}{made.ID, "app", 2})
	data, err := json.Marshal(abandoned)
	good("data", err)
	adopted, err := stacks.Adopt(c, stacks.AdoptOpts{AdoptStackData: string(data), Name: "adopted", TemplateOpts: template}).Extract()
	good("adopt", err)
	stack = settled(c, "adopted", adopted.ID, "ADOPT_COMPLETE")
	equal("the same network", output(stack, "network"), net.PhysicalID)
	good("delete", stacks.Delete(c, "adopted", adopted.ID).ExtractErr())
	settled(c, "adopted", adopted.ID, "DELETE_COMPLETE")
	equal("nothing is left", list(c, stacks.ListOpts{}), []string{})
	// Its sort keys are not those of the API ("name" instead of "stack_name") and are ignored.
	deleted := list(c, stacks.ListOpts{ShowDeleted: true, SortKey: stacks.SortName, SortDir: stacks.SortAsc})
	equal("deleted stacks", deleted, []string{"app", "adopted"})
}

func types(c *gophercloud.ServiceClient, text []byte) {
	info, err := buildinfo.Get(c).Extract()
	good("build info", err)
	check("revisions", info.API.Revision != "" && info.Engine.Revision != "", info)
	all, err := resourcetypes.List(c, resourcetypes.ListOpts{}).Extract()
	good("types", err)
	check("many types", len(all) > 50, len(all))
	schema, err := resourcetypes.GetSchema(c, "OS::Heat::RandomString").Extract()
	good("a type", err)
	equal("its schema", []interface{}{schema.ResourceType, schema.Properties["length"].Type, schema.SupportStatus.Status},
		[]interface{}{"OS::Heat::RandomString", resourcetypes.IntegerProperty, resourcetypes.SupportStatusSupported})
	generated, err := resourcetypes.GenerateTemplate(c, "OS::Heat::RandomString", nil).Extract()
	good("a generated template", err)
	equal("its version", generated["heat_template_version"], "2016-10-14")
	validated, err := stacktemplates.Validate(c, stacktemplates.ValidateOpts{Template: string(text)}).Extract()
	good("validate", err)
	equal("validated", []interface{}{validated.Description, len(validated.Parameters)}, []interface{}{"a network and a word", 2})
}

func errors(c *gophercloud.ServiceClient) {
	_, err := stacks.Find(c, "nobody").Extract()
	_, missing := err.(gophercloud.ErrDefault404)
	check("an unknown stack", missing, err)
	bad := new(stacks.Template)
	bad.Bin = []byte("heat_template_version: 2018-08-31\nresources: {x: {type: 'OS::Nova::Sever'}}\n")
	_, err = stacks.Create(c, stacks.CreateOpts{Name: "bad", TemplateOpts: bad}).Extract()
	_, invalid := err.(gophercloud.ErrDefault400)
	check("an unknown type", invalid, err)
	empty := new(stacks.Template)
	empty.Bin = []byte("heat_template_version: 2018-08-31\n")
	made, err := stacks.Create(c, stacks.CreateOpts{Name: "one", TemplateOpts: empty}).Extract()
	good("an empty stack", err)
	settled(c, "one", made.ID, "CREATE_COMPLETE")
	_, err = stacks.Create(c, stacks.CreateOpts{Name: "one", TemplateOpts: empty}).Extract()
	_, exists := err.(gophercloud.ErrDefault409)
	check("a second stack of the name", exists, err)
	good("delete", stacks.Delete(c, "one", made.ID).ExtractErr())
	settled(c, "one", made.ID, "DELETE_COMPLETE")
}

func main() {
	options, err := openstack.AuthOptionsFromEnv()
	good("options", err)
	provider, err := openstack.AuthenticatedClient(options)
	good("a token", err)
	c, err := openstack.NewOrchestrationV1(provider, gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")})
	good("the endpoint", err)
	text, err := ioutil.ReadFile(os.Args[1])
	good("the template", err)
	life(c, text)
	types(c, text)
	errors(c)
	finish()
}
