package peers;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.File;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** An informer of the fabric8 client: prints every event of one ConfigMap while another client changes it. */
public final class Informer {
  private static final String NAME = "from-java";

  public static void main(String[] arguments) throws Exception {
    Config config = Config.fromKubeconfig(new File(arguments[0]));
    BlockingQueue<String> events = new LinkedBlockingQueue<>();
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
        var informer =
            client
                .configMaps()
                .inNamespace("default")
                .inform(
                    new ResourceEventHandler<>() {
                      @Override
                      public void onAdd(ConfigMap map) {
                        report("add", map);
                      }

                      @Override
                      public void onUpdate(ConfigMap old, ConfigMap map) {
                        report("update", map);
                      }

                      @Override
                      public void onDelete(ConfigMap map, boolean isUnknown) {
                        report("delete", map);
                      }

                      private void report(String event, ConfigMap map) {
                        if (map.getMetadata().getName().equals(NAME)) {
                          events.add(event + " " + map.getData().get("state"));
                        }
                      }
                    })) {
      System.out.println("synced " + informer.hasSynced());
      var maps = client.configMaps().inNamespace("default");
      maps.resource(
              new ConfigMapBuilder()
                  .withNewMetadata()
                  .withName(NAME)
                  .endMetadata()
                  .addToData("state", "created")
                  .build())
          .create();
      print(events);
      maps.withName(NAME)
          .edit(map -> new ConfigMapBuilder(map).addToData("state", "edited").build());
      print(events);
      maps.withName(NAME).delete();
      print(events);
      System.out.println("watching " + informer.isWatching());
    }
  }

  private static void print(BlockingQueue<String> events) throws InterruptedException {
    String event = events.poll(30, TimeUnit.SECONDS);
    if (event == null) {
      throw new IllegalStateException("no event within 30 s");
    }
    System.out.println(event);
  }
}
