import Glibc

/// The command line of netopt-faults. A wrong command line ends the process with the usage and exit code 64.
struct Options: Sendable {
  /// The text of `--help`.
  static let usage = """
    Usage: netopt-faults [--sample N] [--only WORDS] [--short] [--jobs N] [--write FILE] [--list]
           netopt-faults soak [--seconds N] [--seed S] [--rate N] [--most-p99 MS]

    Runs the cells of the fault matrix, each with netopt and then with curl(1), and prints the table. As root it runs in a network of
    its own; otherwise cells that take one are left out.
    --sample N    N cells that have every fault among them, in the place of all
    --only WORDS  the cells whose names contain all of the words, which are separated by commas
    --short       a fault lasts as long as a request that meets it, and nobody waits for the server to be used again
    --jobs N      N processes at once share the cells, each in a network of its own; takes root
    --share I/N   run cells I, I+N, I+2N, …, counted from 0; --jobs passes this
    --write FILE  write the table between its marks in this file, after each cell
    --list        print the names of the cells, and run none

    soak: sends requests while one of three servers after the other fails for a while; which ones fail, how, and what is asked follows
    from the seed.
    --seconds N   for so long (default: 600)
    --seed S      default: 1
    --rate N      so many requests a second (default: 200)
    --most-p99 MS the longest p99, in seconds with a fault, of requests that may be repeated; any unless it is given
    Exit codes: 0 nothing is wrong; 1 there are violations; 2 a cell could not be run; 64 usage.
    """

  /// Whether the first argument is `soak`: the program runs a soak instead of the fault matrix.
  let isSoak: Bool
  /// Whether `--help` is among the arguments.
  private(set) var asksForHelp = false
  /// The values of the options that take one, by option, such as `--jobs`.
  private(set) var values: [String: String] = [:]
  /// The given options that take no value: `--short` and `--list`.
  private(set) var flags: Set<String> = []

  /// Parses the arguments, which do not include the program's name. Ends the process on an unknown option and
  /// on a missing value.
  init(_ arguments: ArraySlice<String>) {
    isSoak = arguments.first == "soak"
    let (known, takeValues): (Set, Set) =
      isSoak
      ? ([], ["--seconds", "--seed", "--rate", "--most-p99"])
      : (["--short", "--list"], ["--sample", "--only", "--write", "--jobs", "--share"])
    var rest = isSoak ? arguments.dropFirst() : arguments
    while let argument = rest.popFirst() {
      if argument == "--help" {
        asksForHelp = true
      } else if known.contains(argument) {
        flags.insert(argument)
      } else if takeValues.contains(argument), let value = rest.popFirst() {
        values[argument] = value
      } else {
        complain(Self.usage)
      }
    }
  }

  /// The value of `--share`: the number of this process's share, from 0, and the number of shares. `nil`
  /// without the option. Ends the process on an invalid value.
  var share: (part: Int, count: Int)? {
    guard let text = values["--share"] else { return nil }
    let numbers = text.split(separator: "/").compactMap { Int($0) }
    guard numbers.count == 2, 1...1000 ~= numbers[1], 0..<numbers[1] ~= numbers[0] else {
      complain(Self.usage)
    }
    return (numbers[0], numbers[1])
  }

  /// The arguments for the processes of `--jobs`: those that select the cells, and the flags. Each process
  /// gets `--share` after them.
  var argumentsOfShares: [String] {
    ["--sample", "--only"].flatMap { option in values[option].map { [option, $0] } ?? [] } + flags.sorted()
  }

  /// The value of an option that takes a number from 1 to 1,000,000; `usual` without the option. Ends the
  /// process on an invalid value.
  func number(_ option: String, default usual: Int) -> Int {
    guard let text = values[option] else { return usual }
    guard let number = Int(text), 1...1_000_000 ~= number else { complain(Self.usage) }
    return number
  }
}

/// Prints an error message and ends the process. `code` is its exit code; 64 means a wrong command line.
func complain(_ text: String, code: Int32 = 64) -> Never {
  _ = write(STDERR_FILENO, text + "\n", text.utf8.count + 1)
  exit(code)
}
