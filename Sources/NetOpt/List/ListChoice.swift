import FoundationEssentials
import NetOptCore
import NetOptEngine
package import NetOptRouting

/// The two lists that a client may have: the configured list, and the newest list that a refresh has fetched
/// for it. `ListAcceptance.prefersCopy` decides which of them the client uses.
struct ListChoice: Sendable {
  /// The list that the configuration names.
  struct Configured: Sendable {
    let list: EndpointList
    /// Where the list is from.
    let source: ListStatus.Source
    /// The content of the list file; `nil` when the list is not from a file.
    var bytes: [UInt8]?
    /// The id of the trusted key that signed the list. `nil` when no keys are configured, and when the list
    /// is not from a file.
    var signedBy: String?
  }

  /// A list that was fetched: by this process, or by an earlier process that saved it as the last good copy.
  struct Fetched: Sendable {
    /// The list, which this process has checked.
    let list: VerifiedList
    /// The bytes of the list and its signature as they were fetched, in the form that `ListStore` saves.
    let copy: ListStore.Copy
    /// Where the list is from: `fetched` or `lastGoodCopy`.
    let source: ListStatus.Source
  }

  /// The configured list.
  var configured: Configured
  /// The newest list that was fetched for the configured list; `nil` when none was fetched.
  var fetched: Fetched?

  /// The fetched list, if the client uses the fetched list. `nil` when the client uses the configured list.
  private var preferred: Fetched? {
    fetched.flatMap { ListAcceptance.prefersCopy($0.list.list, to: configured.list) ? $0 : nil }
  }

  /// The list that the client uses.
  var list: EndpointList { preferred?.list.list ?? configured.list }

  /// The status of the list that the client uses, without the results of refreshes (`lastCheck` and
  /// `lastError`).
  var status: ListStatus {
    var status = ListStatus(source: preferred?.source ?? configured.source)
    status.serial = list.serial
    status.issued = list.issued
    status.expires = list.expires
    status.signedBy = preferred == nil ? configured.signedBy : preferred?.list.signedBy
    if let fetched, fetched.list.list != configured.list, let url = configured.list.refresh?.url {
      let isCopy = preferred != nil
      let (used, left) =
        isCopy
        ? (fetched.list.list.serial, configured.list.serial)
        : (configured.list.serial, fetched.list.list.serial)
      let names = ["\(configured.source)", "the copy from \(url.shown)"]
      status.note =
        "using \(isCopy ? names[1] : names[0]), serial \(used), instead of \(isCopy ? names[0] : names[1]), serial \(left)"
    }
    return status
  }
}

/// What a client reads about its list when it is made.
struct ListStart: Sendable {
  /// The configured list, and its last good copy if there is one. `nil` when the client has no list.
  var choice: ListChoice?
  /// Why the last good copy could not be read, or was not valid; `nil` when there was no such error.
  var copyError: NetOptError?
  /// The identities of the list file and of its signature file, taken before the client read the files; `nil`
  /// for a file that does not exist. `FileWatch` compares them with the files, and so notices a change since
  /// then. Empty when the list is not from a file.
  var identities: [FileIdentity?] = []
}

extension ClientConfiguration {
  /// A reader that checks lists by the rules of this configuration.
  var listReader: ListReader {
    ListReader(trustedKeys: trustedKeys, allowPrivateAddresses: allowPrivateAddresses)
  }

  /// The store of last good copies; `nil` when the configuration keeps no copies, or when there is no state
  /// directory.
  var listStore: ListStore? {
    guard listUpdates.keepCopy else { return nil }
    let directory =
      listUpdates.stateDirectory ?? ListStore.directory(in: ProcessEnvironment.variables)
    return directory.map { ListStore(directory: $0, for: listReader) }
  }

  /// The paths of the list file and its signature file; empty when the list is not from a file.
  var listFiles: [String] {
    guard case .file(let path) = list else { return [] }
    return [path, ListReader.signatureFile(of: path)]
  }

  /// Reads and checks the configured list and its last good copy. When the copy cannot be used, the function
  /// does not throw: `copyError` of the result then has the reason.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the configured list;
  ///   `invalidConfiguration` for a list made in code whose `refresh` uses `http`.
  func startList() throws(NetOptError) -> ListStart {
    var start = ListStart()
    let configured: ListChoice.Configured
    switch list {
    case .none: return start
    case .builtIn: configured = .init(list: .builtIn, source: .builtIn)
    case .list(let given):
      // `ListReader` checks this rule for the lists that it reads, but a list that is made in code passes no
      // `ListReader`.
      if let url = given.refresh?.url, url.origin.scheme != .https {
        throw NetOptError(
          .invalidConfiguration, phase: .list,
          "the given list names the refresh URL \(url.shown); netopt fetches newer lists only over https"
        )
      }
      configured = .init(list: given, source: .given)
    case .file(let path):
      start.identities = listFiles.map { FileIdentity($0) }
      let read = try listReader.file(path, at: Date(), allowExpired: true)
      configured = .init(
        list: read.list, source: .file(path), bytes: read.bytes, signedBy: read.signedBy)
    }
    start.choice = ListChoice(configured: configured)
    do throws(NetOptError) {
      start.choice?.fetched = try lastGoodCopy(of: configured.list)
    } catch {
      start.copyError = error
    }
    return start
  }

  /// Reads the list that a client with this configuration uses at first; `nil` without a list.
  ///
  /// - Throws: the errors of `startList`.
  package func listInUse() throws(NetOptError) -> EndpointList? { try startList().choice?.list }

  /// Reads and checks the last good copy of a configured list. `nil` when the list has no `refresh`, and when
  /// there is no copy.
  func lastGoodCopy(of list: EndpointList) throws(NetOptError) -> ListChoice.Fetched? {
    guard let url = list.refresh?.url, let copy = try listStore?.copy(of: url) else { return nil }
    let name = "the last good copy of \(url.shown)"
    // An expired copy is accepted too, although requests then go over DNS. Without the copy, the client would
    // use the configured list again, which is an older issue.
    let verified = try listReader.check(
      copy.list, signature: copy.signature, name: name, at: Date(), allowExpired: true)
    return ListChoice.Fetched(list: verified, copy: copy, source: .lastGoodCopy(of: url))
  }
}
