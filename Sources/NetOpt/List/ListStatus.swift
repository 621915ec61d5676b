public import FoundationEssentials
public import NetOptCore

/// Which list a client uses, where it is from, and how it is kept up to date.
public struct ListStatus: Sendable {
  /// Where a list is from.
  public enum Source: Hashable, Sendable, CustomStringConvertible {
    /// There is no list.
    case none
    /// It is compiled into the library.
    case builtIn
    /// It was handed over in code.
    case given
    /// It was read from this file.
    case file(String)
    /// It is the last good copy, kept in the state directory, of what this URL had.
    case lastGoodCopy(of: HTTPURL)
    /// It was fetched from this URL since the client was made.
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

  /// Where the list in use is from.
  public internal(set) var source: Source
  /// Its number.
  public internal(set) var serial: Int64?
  /// When it was issued, when it says so.
  public internal(set) var issued: Date?
  /// From when on it is not used any more.
  public internal(set) var expires: Date?
  /// The id of the trusted key that signed it; `nil` when no keys are configured, and for lists that are not read.
  public internal(set) var signedBy: String?
  /// Why a list was chosen over another that is configured, in words for people; `nil` when there was no choice.
  public package(set) var note: String?
  /// When its refresh URL was last looked at with success, newer or not; by an earlier process too.
  public internal(set) var lastCheck: Date?
  /// Why the list could not be refreshed or read again the last time. The list in use stayed in use. `nil` once that
  /// succeeded.
  public internal(set) var lastError: NetOptError?

  /// Makes the status of a list of which nothing else is known.
  public init(source: Source) { self.source = source }
}

/// Is told what becomes of a client's list. Called in a task of the client's own, never on the event loop. Every method
/// has a default that does nothing.
public protocol ListObserver: Sendable {
  /// Another list is in use from now on.
  func listDidChange(_ status: ListStatus)
  /// The list was looked for, and the one in use is the newest.
  func listIsCurrent(_ status: ListStatus)
  /// A list could not be fetched or read, or was refused. The one in use stays in use; `lastError` says why.
  func listDidFail(_ error: NetOptError, _ status: ListStatus)
  /// The list in use has expired, and requests go over DNS until there is another one. Told once of each list, when it expires
  /// or, of one that had expired by then, when it comes into use.
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
