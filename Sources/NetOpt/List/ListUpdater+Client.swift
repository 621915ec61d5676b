import NetOptCore
import NetOptRouting

extension ListUpdater {
  /// Makes the holder of the list in use, and the updater, which is `nil` without a list.
  ///
  /// - Parameter perform: sends a request of the client itself, past the program's interceptors and observers.
  static func updates(
    _ configuration: ClientConfiguration, _ start: ListStart, _ router: Router, _ prober: Prober,
    _ engine: Engine, _ timeSource: any TimeSource,
    perform: @escaping @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  ) -> (ListInUse, ListUpdater?) {
    guard let choice = start.choice else { return (ListInUse(nil, ListStatus(source: .none)), nil) }
    var status = choice.status
    status.lastError = start.copyError
    if let url = choice.configured.list.refresh?.url {
      status.lastCheck = configuration.listStore?.record(of: url).checked
    }
    let inUse = ListInUse(choice.list, status)
    let updater = ListUpdater(
      configuration, choice, inUse, timeSource,
      adopt: { list in
        // Requests along the new list must find its pins.
        engine.trustChanges?.setPins(list.pins)
        router.adopt(list)
        prober.adopt(list)
      },
      perform: perform)
    return (inUse, updater)
  }
}
