import NetOptCore
import Testing

/// The names of files in messages. Users sometimes give the content of a key instead of a name.
@Suite struct FileNameTests {
  @Test(
    "a name appears as it is",
    arguments: [
      "client.pem", "/etc/netopt/client.pem", "./a:b/list.json", "MyKey",
      "/run/2026-11-24T10:00:00/list.json",
      "Makefile-of-a-project-with-a-very-long-name.pem", "key:ring",
      "/var/lib/netopt/certificates/production/client/key",
      "Mobile/production/certificates/client-private-key",
    ])
  func names(_ name: String) { #expect(FileBytes.shown(name) == name) }

  @Test(
    "the content of a key is hidden",
    arguments: [
      // Base64 of a key in DER, of a text in PEM form, and of a key ring; a data URL; content with lines.
      "MHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJk4oXEAYzNQ7w",
      "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
      "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1DNENBUUF3QlFZREsyVndCQ0lF",
      "eyJzY2hlbWEiOjEsImtleXMiOlt7ImlkIjoiYSIsInNlY3JldCI6ImdlaGVpbSJ9XX0",
      "data:application/x-pem-file;base64,LS0t", "-----BEGIN PRIVATE KEY-----", "a\nb",
    ])
  func content(_ text: String) { #expect(FileBytes.shown(text) == "(not a file name)") }

  @Test("a long name appears at once", .timeLimit(.minutes(1)))
  func longName() {
    let name = String(repeating: ":", count: 2_000_000)
    #expect(FileBytes.shown(name) == name)
  }

  @Test(
    "a passphrase behind a name is hidden",
    arguments: [
      "alice.p12:geheim", "/etc/alice.PEM:geheim:x", "a/b.key:", "/run/10:00/alice.p12:geheim",
      "./a:b/c.crt:geheim",
      "file:///etc/alice.p12:geheim",
    ])
  func passphrase(_ text: String) {
    let shown = FileBytes.shown(text)
    #expect(!shown.contains("geheim") && shown.hasSuffix(":[hidden]"))
    #expect(text.hasPrefix(shown.dropLast(":[hidden]".count)))
  }
}
