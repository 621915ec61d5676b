// The example of README.md, as it stands there: ReadmeTests compares them.
import NetOpt

func fetchStatus() async throws {
  var configuration = ClientConfiguration()
  configuration.list = .list(
    EndpointList(hosts: [
      "one.one.one.one": HostEntry(
        endpoints: ["1.1.1.1", "1.0.0.1"].compactMap { IPAddress($0) }.map { ListedEndpoint($0) })
    ]))
  let client = try NetOptClient(configuration)
  let response = try await client.execute(NetOptRequest(.get, "https://one.one.one.one/"))
  let body = try await response.body.collect(upTo: 1 << 20)
  print(response.status, body.count, "bytes from", response.remote?.description ?? "nobody")
  print("DNS was used because", response.route.fallback?.rawValue ?? "it was not")
  await client.shutdown()
}
