import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptEngine
import NetOptRouting
import Synchronization

/// Keeps the ranking of each network that this machine is in: in memory while the client lives, and from run to run in a
/// `RankingStore`, when there is one.
final class RankingMemory: Sendable {
  /// How often it is written while the client is in use.
  private static let saveInterval = Duration.seconds(300)

  private struct State {
    var network: NetworkFingerprint
    /// The histories of networks that were left, by fingerprint.
    var left: [String: RouteHistory] = [:]
    var lastSaved: MonotonicInstant
  }

  private let router: Router
  private let store: RankingStore?
  private let timeSource: any TimeSource
  private let warn: @Sendable (NetOptError) -> Void
  private let hasWarned = Atomic(false)
  private let state: Locked<State>

  init(
    _ router: Router, _ configuration: ClientConfiguration, network: NetworkFingerprint,
    _ timeSource: any TimeSource
  ) {
    self.router = router
    self.timeSource = timeSource
    let directory =
      switch configuration.rankingHistory {
      case .stateDirectory: StateDirectory.path(ProcessInfo.processInfo.environment)
      case .directory(let path): Optional(path)
      case .none: String?.none
      }
    store = directory.map { RankingStore($0) }
    warn = configuration.warningHandler ?? { _ in }
    state = Locked(State(network: network, lastSaved: timeSource.now()))
  }

  /// Has the router know what was known of this network, unless that is too long ago.
  ///
  /// - Returns: the hosts of which something is known now.
  func restore() -> Set<String> {
    guard router.withPlanner({ planner, _ in planner.list != nil }) else { return [] }
    let (network, left) = state.withLock { ($0.network.description, $0.left[$0.network.description]) }
    guard let history = (left ?? load(network))?.current(at: Date()) else { return [] }
    return state.withLock { state in
      // It may be yet another network by now.
      guard state.network.description == network else { return [] }
      return router.withPlanner { planner, now in planner.adopt(history, at: now, date: Date()) }
    }
  }

  /// Begins anew in another network. What was learned is kept for the time when the machine comes back; what was learned there
  /// and is still in memory is known again at once.
  ///
  /// - Returns: the hosts of which something is known now; `nil` when only `restore` can tell.
  func networkChanged(to network: NetworkFingerprint) -> Set<String>? {
    let date = Date()
    // Under the lock, as all that says which history is whose.
    return state.withLock { state in
      let kept = state.left[network.description]
      let (left, known) = router.beginNetwork(at: date, knowing: kept?.current(at: date))
      // What was not measured since is as old as it was; and what is empty must not hide what the file has.
      let before = state.left[state.network.description]?.current(at: date)
      let learned = before.map(left.merged(with:)) ?? left
      state.left[state.network.description] = learned.hosts.isEmpty ? nil : learned
      state.network = network
      // A machine that travels far does not come back soon.
      if state.left.count > RankingStore.mostNetworks { state.left = [:] }
      return kept == nil ? nil : known
    }
  }

  /// Writes the ranking when that has not been done for a while.
  func saveIfOld() {
    let now = timeSource.now()
    let isOld = state.withLock { state in
      guard now - state.lastSaved >= Self.saveInterval else { return false }
      state.lastSaved = now
      return true
    }
    if isOld { save() }
  }

  /// Writes the ranking, and those of networks that were left. A client that has planned no request along its list writes
  /// nothing.
  func save() {
    guard let store else { return }
    let date = Date()
    let histories = state.withLock { state -> [String: RouteHistory] in
      let present = router.withPlanner { planner, now in
        planner.isUsed ? planner.history(at: now, date: date) : nil
      }
      guard let present else { return [:] }
      return state.left.merging([state.network.description: present]) { $1 }
    }
    let known = histories.filter { !$0.value.hosts.isEmpty }
    if known.isEmpty { return }
    do throws(NetOptError) {
      try store.save(known, at: date)
      // What cannot be written is still known.
      state.withLock { state in
        for network in known.keys { state.left.removeValue(forKey: network) }
      }
    } catch {
      warnOnce(error)
    }
  }

  private func load(_ network: String) -> RouteHistory? {
    do throws(NetOptError) {
      return try store?.load(network)
    } catch {
      warnOnce(error)
      return nil
    }
  }

  private func warnOnce(_ error: NetOptError) {
    if !hasWarned.exchange(true, ordering: .relaxed) { warn(error) }
  }
}
