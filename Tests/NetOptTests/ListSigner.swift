import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptRouting
import NetOptTestSupport

@testable import NetOpt

/// A random minisign key, and signatures made with it.
struct ListSigner {
  let key: MinisignSecretKey
  /// The content of a secret key file with this key. The key is not encrypted.
  let keyFile: String

  init() throws {
    let seed = try SecretBytes(randomCount: 32)
    let publicKey = try Ed25519.PrivateKey(seed: seed).publicKey.bytes
    // The format of minisign: the algorithm of signatures, no encryption (two zero bytes), the algorithm of
    // the checksum, and 48 bytes for the parameters of an encryption. Then come the key id (8 bytes), the
    // seed, the public key, and a checksum, which matters only in an encrypted key.
    let head = Array("Ed".utf8) + [0, 0] + Array("B2".utf8) + [UInt8](repeating: 0, count: 48)
    let secret = try randomBytes(8) + seed.withUnsafeBytes { Array($0) } + publicKey
    let body = Data(head + secret + [UInt8](repeating: 0, count: 32)).base64EncodedString()
    keyFile = "untrusted comment: a test's key\n\(body)\n"
    key = try MinisignSecretKey(Array(keyFile.utf8), file: "key") { () throws(NetOptError) in
      throw NetOptError(.invalidKey, phase: .list, "no password is needed")
    }
  }

  var publicKey: MinisignPublicKey { key.publicKey }

  /// The content of a signature file for the bytes.
  func signature(
    of bytes: [UInt8], _ algorithm: MinisignSignature.Algorithm = .prehashed
  ) throws -> [UInt8] {
    let signature = try key.signature(
      of: bytes, algorithm, untrustedComment: "a comment", trustedComment: "a test's list")
    return Array(signature.text.utf8)
  }
}

/// The bytes of a list file.
///
/// - Parameters:
///   - refresh: the refresh URL; `nil` for a list without `refresh`.
///   - every: the interval of refreshes, as in the list.
///   - expires: the date of expiry, as in the list.
///   - hosts: the hosts of the list in JSON.
func listBytes(
  serial: Int, refresh: String? = nil, every: String = "24h", expires: String = "2099-01-01T00:00:00Z",
  hosts: String = #"{"api.test":{"endpoints":[{"ip":"127.0.0.1"}]}}"#
) -> [UInt8] {
  let rule = refresh.map { #""refresh":{"url":"\#($0)","every":"\#(every)"},"# } ?? ""
  return Array(#"{"schema":1,"serial":\#(serial),"expires":"\#(expires)",\#(rule)"hosts":\#(hosts)}"#.utf8)
}

/// Replaces a file atomically, as many editors do: writes a new file beside it, and gives the new file its
/// name.
func replaceFile(_ path: String, _ bytes: [UInt8]) throws {
  try FileBytes.replace(path, with: bytes, mode: 0o644, as: "the test's file", in: .list)
}

/// Records what a client reports of its list.
final class ListRecorder: ListObserver {
  /// A call of a method of `ListObserver`, with its arguments.
  enum Event: Sendable {
    case changed(ListStatus)
    case current(ListStatus)
    case failed(NetOptError, ListStatus)
    case expired(NetOptError, ListStatus)

    var isExpiry: Bool { if case .expired = self { true } else { false } }
    var isFailure: Bool { if case .failed = self { true } else { false } }
    var isChange: Bool { if case .changed = self { true } else { false } }
    var status: ListStatus {
      switch self {
      case .changed(let status), .current(let status), .failed(_, let status), .expired(_, let status): status
      }
    }
  }

  let events = EventRecorder<Event>()

  func listDidChange(_ status: ListStatus) { events.record(.changed(status)) }
  func listIsCurrent(_ status: ListStatus) { events.record(.current(status)) }
  func listDidFail(_ error: NetOptError, _ status: ListStatus) { events.record(.failed(error, status)) }
  func listDidExpire(_ error: NetOptError, _ status: ListStatus) { events.record(.expired(error, status)) }
}
