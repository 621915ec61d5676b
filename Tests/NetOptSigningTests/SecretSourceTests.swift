import NetOptCore
import NetOptCrypto
import TestTools
import Testing

@testable import NetOptSigning

/// Secrets from environment variables and commands.
@Suite struct SecretSourceTests {
  /// A user may write the secret itself in place of the variable's name. So messages show only a text that
  /// looks like the name of a variable (`isShown`).
  @Test(
    "messages show the name of a variable, but no secret in its place",
    arguments: [
      ("hunter2hunter2", false), ("S3CRETS3CRET", false), ("dGhpcyBpcw", false), ("a_b", false),
      ("NETOPT_TEST_NOT_SET", true), ("NETOPT_9", true),
    ])
  func names(name: String, isShown: Bool) throws {
    let text = #"{"schema":1,"keys":[{"id":"a","secret_env":"\#(name)","schemes":["netopt1"]}]}"#
    let ring = try KeyRing(json: SecretBytes(copying: Array(text.utf8)))
    let key = try #require(ring["a"])
    #expect(key.kind.contains(name) == isShown)
    let signer = try RequestSigner(keys: ring, keyID: "a")
    let error = #expect(throws: NetOptError.self) {
      try signer.sign(SigningRequest("GET", "https://a.test/"))
    }
    #expect(error?.message.contains(name) == isShown, "\(error?.message ?? "")")
    #expect(error?.message.contains("variable") == true)
  }

  /// Runs a command that prints a secret, and returns the secret.
  ///
  /// - Parameter patience: the longest time that the command may run.
  private func output(_ command: String, within patience: Duration = .seconds(20)) throws(SigningFault)
    -> String
  {
    try SecretSource.command(command).fetch(for: "a", within: patience).text
  }

  @Test("a secret is all output of its command, and a failed command is an error")
  func output() throws {
    let large = String(repeating: "x", count: SecretSource.limit)
    let cases = [
      ("echo secret", "secret"), ("printf '12\\n34\\n'", "12\n34"),
      ("echo $PPID >&2; echo a; sleep 0.1; echo b", "a\nb"),
      ("head -c \(SecretSource.limit) /dev/zero | tr '\\0' x", large), ("exec sh -c 'echo other'", "other"),
      ("echo early; exec >&-; sleep 0.1", "early"), ("cat; echo no input", "no input"),
    ]
    for (command, secret) in cases { #expect(try output(command) == secret, "\(command)") }
    for (command, text) in [
      ("exit 3", "exit code 3"), ("kill -9 $$", "signal 9"), ("true", "printed nothing"),
      ("echo", "printed nothing"),
      ("head -c \(SecretSource.limit + 1) /dev/zero", "more than"), ("yes", "more than"),
      ("none-such", "not found"),
      ("(", "exit code"),
    ] {
      let fault = #expect(throws: SigningFault.self) { try output(command) }
      #expect(fault?.detail.contains(text) == true, "\(command): \(fault?.detail ?? "")")
    }
  }

  @Test("a command ends with its shell or at its time limit")
  func ends() throws {
    // The shell ends at once. Its background process keeps the pipe open, but netopt does not wait for it.
    #expect(try output("sleep 60 & echo secret") == "secret")
    // netopt kills these shells at the limit, although the third ignores SIGTERM and SIGPIPE, and the last
    // closes its output.
    for command in [
      "sleep 60", "exec sleep 60", "trap '' TERM PIPE; while :; do sleep 0.05; echo a; done",
      "exec >&-; sleep 60",
    ] {
      let clock = ContinuousClock()
      let taken = clock.measure {
        let fault = #expect(throws: SigningFault.self) { try output(command, within: .milliseconds(300)) }
        #expect(fault?.detail.contains("took longer than 300 ms") == true, "\(fault?.detail ?? "")")
      }
      #expect(taken < .seconds(15))
    }
  }

  @Test("a command that failed is not run again at once")
  func rests() throws {
    let file = try TemporaryDirectory.make("secret") + "/runs"
    let text =
      #"{"schema":1,"keys":[{"id":"a","secret_command":"echo run >>\#(file); exit 1","schemes":["netopt1"]}]}"#
    let key = try #require(try KeyRing(json: SecretBytes(copying: Array(text.utf8)))["a"])
    for _ in 0..<3 {
      #expect(throws: SigningFault.self) { try key.material() }
      #expect(key.fingerprint.hasPrefix("random "))
    }
    // The file has the 4 bytes of one line `run`: the command ran once.
    #expect(try FileBytes.read(file, upTo: 100, as: "a file", in: .sign).count == 4)
  }
}
