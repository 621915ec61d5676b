import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// The list that a client uses, shared by all its parts. Safe from any thread.
final class ListInUse: Sendable {
  private let state: Locked<(list: EndpointList?, status: ListStatus)>

  init(_ list: EndpointList?, _ status: ListStatus) { state = Locked((list, status)) }

  var list: EndpointList? { state.withLock { $0.list } }
  var status: ListStatus { state.withLock { $0.status } }

  func set(_ list: EndpointList?, _ status: ListStatus) { state.withLock { $0 = (list, status) } }

  /// The problem with the list in use: its expiry, or else the last failure to refresh or read it; `nil` when
  /// there is none.
  func warning(at date: Date) -> NetOptError? {
    let (list, status) = state.withLock { ($0.list, $0.status) }
    guard let list, list.isExpired(at: date), let expires = list.expires else { return status.lastError }
    return NetOptError(
      .invalidList, phase: .list,
      "the IP list has expired (\(expires.formatted(.iso8601))): netopt resolves names with DNS until it has a newer list"
    )
  }
}
