import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// Holds the list that a client uses, and the status of that list. `ListUpdater` sets both; the client reads
/// them. Safe from any thread.
final class ListInUse: Sendable {
  private let state: Locked<(list: EndpointList?, status: ListStatus)>

  init(_ list: EndpointList?, _ status: ListStatus) { state = Locked((list, status)) }

  /// The list in use; `nil` when the client has no list.
  var list: EndpointList? { state.withLock { $0.list } }
  /// The status of the list in use.
  var status: ListStatus { state.withLock { $0.status } }

  func set(_ list: EndpointList?, _ status: ListStatus) { state.withLock { $0 = (list, status) } }

  /// The error to tell the caller about the list: that the list in use has expired, or otherwise `lastError`
  /// of its status. `nil` when there is neither.
  func warning(at date: Date) -> NetOptError? {
    let (list, status) = state.withLock { ($0.list, $0.status) }
    guard let list, list.isExpired(at: date), let expires = list.expires else { return status.lastError }
    return NetOptError(
      .invalidList, phase: .list,
      "the IP list has expired (\(expires.formatted(.iso8601))): netopt resolves names with DNS until it has a newer list"
    )
  }
}
