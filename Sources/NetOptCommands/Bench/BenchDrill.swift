import FoundationEssentials
import NetOpt
import NetOptBench
import NetOptCore
import NetOptRouting

/// Runs the failover drill: measures what a dead address costs the calls of a new client. A dead address is
/// an address of the list that cannot be used. `Drill` defines the trials. This type creates their clients
/// and makes their calls.
struct BenchDrill {
  private let request: NetOptRequest
  /// The configuration of the command's clients. `calls` replaces the list and the routing in it.
  private let configuration: ClientConfiguration
  private let context: CommandContext

  /// Creates a drill that sends the request of a run.
  init(_ request: NetOptRequest, _ configuration: ClientConfiguration, in context: CommandContext) {
    self.request = request
    self.configuration = configuration
    self.context = context
  }

  /// Runs the drill for each dead address: each address that the run excluded because its first request
  /// failed. An address that was excluded for its status is not dead.
  ///
  /// - Parameter report: the report of the run.
  /// - Returns: a result for each dead address for which a trial ended. Empty if the run excluded all
  ///   addresses of the list, because the drill compares with a client that has only usable addresses.
  func results(after report: BenchReport) async -> [Drill.Result] {
    let live = report.ranking.compactMap(\.target.address)
    guard !live.isEmpty else { return [] }
    let drill = Drill(
      live: live, now: { Int64(context.now().timeIntervalSince1970 * 1e6) },
      calls: { addresses, count in await calls(addresses, count) })
    var results: [Drill.Result] = []
    for target in report.targets {
      // An address that was excluded for its status accepts connections, so it is not dead.
      guard let address = target.target.address, let exclusion = target.exclusion, exclusion.code != "status",
        let result = await drill.result(of: address, exclusion)
      else { continue }
      results.append(result)
    }
    return results
  }

  /// Makes calls with a new client, one after the other. Stops after `count` calls, or when a signal cancels
  /// the task.
  ///
  /// - Parameters:
  ///   - addresses: the addresses of the host in the list of the client, in this order. The first is the dead
  ///     address, except for the client that has only usable addresses. A call is affected if it tried the
  ///     first address without success.
  /// - Returns: the results of the calls. Empty if the client could not be created.
  private func calls(_ addresses: [IPAddress], _ count: Int) async -> [Drill.Call] {
    var configuration = configuration
    let origin = request.url.origin
    configuration.list = .list(
      EndpointList(hosts: [
        origin.host: HostEntry(port: origin.port, endpoints: addresses.map { ListedEndpoint($0) })
      ]))
    // Without the variables `NETOPT_REGION`, `NETOPT_ISP` and `NETOPT_POLICY`, a new client tries the
    // addresses in the order of the list.
    configuration.routing = RoutingConfiguration(environment: [:])
    var request = request
    request.options.routing = .automatic
    request.options.maxRedirects = 0
    let clock = SystemTimeSource()
    let found = try? await context.withClient(configuration) { client in
      var found: [Drill.Call] = []
      while found.count < count, !Task.isCancelled {
        let started = clock.now()
        let (route, isAnswered) = await Self.call(request, client)
        found.append(
          Drill.Call(
            duration: clock.now() - started,
            isAffected: route?.legs.contains { $0.address == addresses.first && $0.outcome != .won } ?? false,
            isAnswered: isAnswered))
      }
      return found
    }
    return found ?? []
  }

  /// Sends a request and reads the whole response.
  ///
  /// - Returns: the route of the call, and whether the call succeeded: it got a whole response with a 2xx or
  ///   3xx status. The route is `nil` if the call failed before it had a route.
  private static func call(_ request: NetOptRequest, _ client: any Client) async -> (RouteReport?, Bool) {
    do throws(NetOptError) {
      let response = try await client.execute(request)
      let route = response.route
      var chunks = response.body.makeAsyncIterator()
      while try await chunks.next() != nil {}
      return (route, Sample.isSuccess(response.status))
    } catch {
      return (error.route, false)
    }
  }
}
