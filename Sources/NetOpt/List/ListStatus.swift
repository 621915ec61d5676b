public import FoundationEssentials
public import NetOptCore

/// The status of a client's list: its source, its serial and dates, and its last refresh.
public struct ListStatus: Sendable {
  /// The source of a list.
  public enum Source: Hashable, Sendable, CustomStringConvertible {
    /// There is no list.
    case none
    /// The list is compiled into the library.
    case builtIn
    /// The program passed the list in the configuration.
    case given
    /// The list is from this file.
    case file(String)
    /// The list is the last good copy, in the state directory, of the list at this URL.
    case lastGoodCopy(of: HTTPURL)
    /// The list was fetched from this URL since the client was made.
    case fetched(from: HTTPURL)

    /// The source in words.
    public var description: String {
      switch self {
      case .none: "none"
      case .builtIn: "the list compiled into the program"
      case .given: "the list that was given"
      case .file(let path): path
      case .lastGoodCopy(let url): "the last good copy of \(url.shown)"
      case .fetched(let url): url.shown
      }
    }
  }

  /// The source of the list in use.
  public internal(set) var source: Source
  /// The serial number of the list; `nil` without a list.
  public internal(set) var serial: Int64?
  /// When the list was issued; `nil` when the list does not say so.
  public internal(set) var issued: Date?
  /// When the list expires; `nil` for a list that does not expire. After this moment requests go over DNS.
  public internal(set) var expires: Date?
  /// The id of the trusted key that signed the list; `nil` when no keys are configured, and for lists that
  /// are not from a file or a URL.
  public internal(set) var signedBy: String?
  /// A sentence for people. It says which list the client uses when the configured list and the fetched list
  /// differ. `nil` when they do not differ, and when there is no fetched list.
  public package(set) var note: String?
  /// When a refresh last succeeded, whether or not it brought a newer list. An earlier process may have made
  /// this refresh. `nil` when no successful refresh is known.
  public internal(set) var lastCheck: Date?
  /// The error that keeps the client from a newer list; `nil` when there is none. The list in use stays in
  /// use.
  ///
  /// When the last attempt to read the list file failed, this is the error of that attempt. Otherwise it is
  /// the error of the last attempt to refresh the list, or to load or save its last good copy, if that
  /// attempt failed.
  public internal(set) var lastError: NetOptError?

  /// Makes a status with only the source of the list.
  public init(source: Source) { self.source = source }
}

/// Observes changes of a client's list. The client calls the methods in its own tasks, never on the event
/// loop. Every method has a default that does nothing.
public protocol ListObserver: Sendable {
  /// The client uses another list from now on.
  func listDidChange(_ status: ListStatus)
  /// A refresh found that the list in use is the newest.
  func listIsCurrent(_ status: ListStatus)
  /// An attempt to fetch, read or accept a list failed, the last good copy could not be saved, or the list
  /// file could not be watched. `error` says why. The list in use stays in use.
  func listDidFail(_ error: NetOptError, _ status: ListStatus)
  /// The list in use has expired. Requests go over DNS until there is a new list. The client calls this once
  /// for each list: when the list expires, or, if it has already expired, when it comes into use.
  func listDidExpire(_ error: NetOptError, _ status: ListStatus)
}

extension ListObserver {
  /// Does nothing.
  public func listDidChange(_ status: ListStatus) {}
  /// Does nothing.
  public func listIsCurrent(_ status: ListStatus) {}
  /// Does nothing.
  public func listDidFail(_ error: NetOptError, _ status: ListStatus) {}
  /// Does nothing.
  public func listDidExpire(_ error: NetOptError, _ status: ListStatus) {}
}
