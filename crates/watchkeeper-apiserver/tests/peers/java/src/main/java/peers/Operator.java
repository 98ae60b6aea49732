package peers;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** An operator of the Java Operator SDK: a ConfigMap and a status for each Greeting, and a finalizer. */
public final class Operator {
  private static final String DEFINITION =
      """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata:
        name: greetings.peers.example.com
      spec:
        group: peers.example.com
        scope: Namespaced
        names: {plural: greetings, singular: greeting, kind: Greeting}
        versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: {type: object, properties: {name: {type: string}}}
                  status: {type: object, properties: {message: {type: string}}}
      """;

  /** Keeps the ConfigMap and the status of a Greeting in line with its spec. */
  @ControllerConfiguration(name = "greetings")
  public static final class GreetingReconciler implements Reconciler<Greeting>, Cleaner<Greeting> {
    @Override
    public List<EventSource<?, Greeting>> prepareEventSources(EventSourceContext<Greeting> context) {
      var maps =
          InformerEventSourceConfiguration.from(ConfigMap.class, Greeting.class)
              .withLabelSelector("app=greetings")
              .build();
      return List.of(new InformerEventSource<>(maps, context));
    }

    @Override
    public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
      String message = "Hello " + greeting.getSpec().name;
      ConfigMap map =
          new ConfigMapBuilder()
              .withNewMetadata()
              .withName(greeting.getMetadata().getName())
              .withNamespace(greeting.getMetadata().getNamespace())
              .addToLabels("app", "greetings")
              .endMetadata()
              .addToData("message", message)
              .build();
      map.addOwnerReference(greeting);
      context.getClient().resource(map).fieldManager("greetings").forceConflicts().serverSideApply();
      // A patch without effect returns the version of the last writer, which the SDK would take for its own write.
      if (greeting.getStatus() != null && message.equals(greeting.getStatus().message)) {
        return UpdateControl.noUpdate();
      }
      Greeting status = new Greeting();
      status.setMetadata(
          new ObjectMetaBuilder()
              .withName(greeting.getMetadata().getName())
              .withNamespace(greeting.getMetadata().getNamespace())
              .build());
      status.setStatus(new Greeting.Status());
      status.getStatus().message = message;
      return UpdateControl.patchStatus(status);
    }

    @Override
    public DeleteControl cleanup(Greeting greeting, Context<Greeting> context) {
      System.out.println("cleanup " + greeting.getMetadata().getName());
      return DeleteControl.defaultDelete();
    }
  }

  public static void main(String[] arguments) {
    int code = 0;
    try {
      run(arguments);
    } catch (Exception failure) {
      failure.printStackTrace();
      code = 1;
    }
    // The threads of the operator would keep the program running.
    System.exit(code);
  }

  private static void run(String[] arguments) throws Exception {
    Config config = Config.fromKubeconfig(new File(arguments[0]));
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      client
          .load(new ByteArrayInputStream(DEFINITION.getBytes(StandardCharsets.UTF_8)))
          .serverSideApply();
      client
          .apiextensions()
          .v1()
          .customResourceDefinitions()
          .withName("greetings.peers.example.com")
          .waitUntilCondition(Operator::isEstablished, 30, TimeUnit.SECONDS);
      var operator =
          new io.javaoperatorsdk.operator.Operator(overrides -> overrides.withKubernetesClient(client));
      operator.register(new GreetingReconciler());
      operator.start();

      var greetings = client.resources(Greeting.class).inNamespace("default");
      Greeting greeting = new Greeting();
      greeting.setMetadata(new ObjectMetaBuilder().withName("from-java").build());
      greeting.setSpec(new Greeting.Spec());
      greeting.getSpec().name = "Ann";
      greetings.resource(greeting).create();
      await(client, "Hello Ann");
      greetings.withName("from-java").edit(found -> {
        found.getSpec().name = "Bob";
        return found;
      });
      await(client, "Hello Bob");
      // Only the operator restores a deleted ConfigMap.
      client.configMaps().inNamespace("default").withName("from-java").delete();
      await(client, "Hello Bob");
      greetings.withName("from-java").delete();
      greetings
          .withName("from-java")
          .waitUntilCondition(found -> found == null, 30, TimeUnit.SECONDS);
      System.out.println("gone");
      operator.stop();
    }
  }

  private static boolean isEstablished(
      io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition definition) {
    return definition != null
        && definition.getStatus() != null
        && definition.getStatus().getConditions().stream()
            .anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True"));
  }

  private static void await(KubernetesClient client, String message) {
    client
        .configMaps()
        .inNamespace("default")
        .withName("from-java")
        .waitUntilCondition(
            map -> map != null && message.equals(map.getData().get("message")), 30, TimeUnit.SECONDS);
    client
        .resources(Greeting.class)
        .inNamespace("default")
        .withName("from-java")
        .waitUntilCondition(
            found -> found.getStatus() != null && message.equals(found.getStatus().message),
            30,
            TimeUnit.SECONDS);
    System.out.println("reconciled " + message);
  }
}
