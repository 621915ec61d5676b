import FoundationEssentials
import NetOptCore
import NetOptEngine
import NetOptRouting

/// A configured list and the last good copy of it, of which one is used.
struct ListChoice: Sendable {
  /// The list that the configuration names.
  struct Configured: Sendable {
    let list: EndpointList
    let source: ListStatus.Source
    /// The file's bytes, when it is from a file.
    var bytes: [UInt8]?
    var signedBy: String?
  }

  /// A list that was fetched, now or by an earlier process.
  struct Fetched: Sendable {
    let list: VerifiedList
    let copy: ListStore.Copy
    let source: ListStatus.Source
  }

  var configured: Configured
  var fetched: Fetched?

  private var preferred: Fetched? {
    fetched.flatMap { ListAcceptance.prefersCopy($0.list.list, to: configured.list) ? $0 : nil }
  }

  /// The list that is used.
  var list: EndpointList { preferred?.list.list ?? configured.list }

  /// What is to be said of it.
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
      let names = ["\(configured.source)", "what \(url.shown) had"]
      status.note =
        "using \(isCopy ? names[1] : names[0]), serial \(used), and not \(isCopy ? names[0] : names[1]), serial \(left)"
    }
    return status
  }
}

/// What a client starts with.
struct ListStart: Sendable {
  /// The list and its copy; `nil` without a list.
  var choice: ListChoice?
  /// What was wrong with the copy, if anything.
  var copyError: NetOptError?
  /// What the file was before it was read, and its signature.
  var identities: [FileIdentity?] = []
}

extension ClientConfiguration {
  /// How lists are read.
  var listReader: ListReader {
    ListReader(trustedKeys: trustedKeys, allowPrivateAddresses: allowPrivateAddresses)
  }

  /// Where copies of lists are kept, unless they are kept nowhere.
  var listStore: ListStore? {
    guard listUpdates.keepCopy else { return nil }
    let directory =
      listUpdates.stateDirectory ?? ListStore.directory(in: ProcessInfo.processInfo.environment)
    return directory.map { ListStore(directory: $0, for: listReader) }
  }

  /// The file that the list is read from, and that of its signature.
  var listFiles: [String] {
    guard case .file(let path) = list else { return [] }
    return [path, ListReader.signatureFile(of: path)]
  }

  /// Reads and checks the list and the last good copy of it.
  ///
  /// - Throws: `invalidList`, `invalidSignature` or `unreadableFile` for the configured list, `invalidConfiguration` for
  ///   one made in code that is to be refreshed over `http`. A copy that is no good is passed over.
  func startList() throws(NetOptError) -> ListStart {
    var start = ListStart()
    let configured: ListChoice.Configured
    switch list {
    case .none: return start
    case .builtIn: configured = .init(list: .builtIn, source: .builtIn)
    case .list(let given):
      // Of lists that are read this is a rule.
      if let url = given.refresh?.url, url.origin.scheme != .https {
        throw NetOptError(
          .invalidConfiguration, phase: .list,
          "the list that was given is to be refreshed from \(url.shown); newer issues are fetched over https alone"
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

  /// The last good copy of a list, when it says where newer issues are found and there is one.
  func lastGoodCopy(of list: EndpointList) throws(NetOptError) -> ListChoice.Fetched? {
    guard let url = list.refresh?.url, let copy = try listStore?.copy(of: url) else { return nil }
    let name = "the last good copy of \(url.shown)"
    // One that has expired goes over DNS; the older list that it has replaced is not to come back.
    let verified = try listReader.check(
      copy.list, signature: copy.signature, name: name, at: Date(), allowExpired: true)
    return ListChoice.Fetched(list: verified, copy: copy, source: .lastGoodCopy(of: url))
  }
}
