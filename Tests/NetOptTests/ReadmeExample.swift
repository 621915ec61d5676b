// The example in README.md. `ReadmeTests` checks that both texts are the same.
import NetOpt

func fetchStatus() async throws {
  var configuration = ClientConfiguration()
  configuration.list = .file("iplist.json")  // or .list(EndpointList(…))
  let client = try NetOptClient(configuration)
  let response = try await client.execute(NetOptRequest(.get, "https://one.one.one.one/"))
  let body = try await response.body.collect(upTo: 1 << 20)
  print(response.status, body.count, "bytes; address from", response.route.source.rawValue)
  if let fallback = response.route.fallback { print("DNS was used:", fallback.rawValue) }
  await client.shutdown()
}
