import NetOptTestSupport
import Glibc

/// What a child process was about to do when it ended. A trap leaves no other word of the input that led to it.
package struct LastNote: Sendable {
  /// The file, by which the child and its parent share the note.
  package let path: String

  /// Makes an empty note.
  package init() throws { path = try TemporaryDirectory.make("note") + "/last" }

  /// The note of another process.
  package init(_ path: String) { self.path = path }

  /// Replaces the note.
  package func write(_ text: String) { try? TextFile.write(text, to: path) }

  /// What was written last, the first 4,000 characters of it; empty when nothing was.
  package var text: String { String(TextFile.read(path).prefix(4000)) }
}
