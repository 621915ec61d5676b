import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools

/// A key ring and requests for the tests of the signing commands. The key `app1.v2` is the key of the golden
/// vector (Tests/Vectors/signing.json), which every implementation must reproduce. The secrets of all other
/// keys contain a canary, which must not appear in any output.
struct SigningFixture {
  /// The text that marks the secrets.
  static let canary = "canary-3f9a"
  /// The signature of the golden vector in hexadecimal.
  static let golden = "34aa7469d684228686cb97a4d4d5f06d765335c90515211c836443deb7eb68e4"
  /// The URL of the golden vector. Parsing it makes the host lower-case and removes the default port.
  static let url = "https://API.Example.com:443/user/search?q=a%20b%2Bc&tag=%C3%A9&tag=x&empty="
  /// The request of the golden vector as a line for `sign --jsonl`.
  static let line =
    #"{"id":1,"method":"POST","url":"\#(url)","headers":[["content-type","application/json"]],"#
    + #""body":"{\"hello\": \"world\"}","key_id":"app1.v2","now":1700000000,"nonce":"AAECAwQFBgcICQoLDA0ODw"}"#
  /// The request of the golden vector with its signature, as a line for `verify --jsonl`.
  static let signedLine = line.replacing(
    #"[["content-type""#,
    with:
      #"[["Authorization","NETOPT1-HMAC-SHA256 keyid=app1.v2,ts=1700000000,nonce=AAECAwQFBgcICQoLDA0ODw,headers=content-type,sig=\#(golden)"],["content-type""#
  ).replacing(#","nonce":"AAECAwQFBgcICQoLDA0ODw"}"#, with: "}")

  /// A temporary directory with the key ring.
  let directory: String
  /// The path of the key ring.
  var keys: String { directory + "/keys.json" }

  init() throws {
    directory = try TemporaryDirectory.make("signing")
    let c = Self.canary
    try write(
      """
      {"schema":1,"keys":[
        {"id":"app1.v2","secret":"netopt-test-secret","salt":"salt-2024","schemes":["netopt1"]},
        {"id":"c1","secret":"\(c)-secret","salt":"s","schemes":["netopt1","rfc9421","sigv4"],"session_token":"\(c)-token"},
        {"id":"c2","secret":"\(c)-legacy","salt":"s","schemes":["salted-md5","netopt1"],"legacy":true},
        {"id":"c3","secret_command":"echo \(c)-command; exit 3","schemes":["netopt1"]},
        {"id":"c4","secret_env":"NETOPT_TEST_NOT_SET","schemes":["netopt1"]},
        {"id":"c5","secret":"\(c)-platform-of-32-bytes","schemes":["sealed-key"],"legacy":true},
        {"id":"c6","secret":"\(c)-caller","schemes":["sealed-key"]},
        {"id":"c7","secret_command":"printf '%s\\\\n' \(c)-printed","salt":"s","schemes":["netopt1"]}]}
      """, to: keys)
  }

  /// Writes a file with the given permissions. By default, only its owner can read and write the file.
  func write(_ text: String, to path: String, mode: mode_t = 0o600) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    chmod(path, mode)
  }
}
