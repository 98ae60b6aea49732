package peers;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** The custom resource of the operator. */
@Group("peers.example.com")
@Version("v1")
public class Greeting extends CustomResource<Greeting.Spec, Greeting.Status> implements Namespaced {
  /** The desired state. */
  public static class Spec {
    public String name;
  }

  /** The state that the operator reports. */
  public static class Status {
    public String message;
  }
}
