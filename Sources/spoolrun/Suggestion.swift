internal import Glibc
internal import Spool

/// What a person may have meant by a word that is no command.
enum Suggestion {
  /// What the commands are called elsewhere. A word may belong to several commands; the first one that exists counts.
  private static let synonyms: [(command: String, words: Set<String>)] = [
    ("get", ["download", "fetch", "wget", "curl"]),
    ("add", ["download", "fetch", "drop", "enqueue", "submit", "put", "push"]),
    ("subscribe", ["feed", "follow", "rss", "mirror"]),
    ("hold", ["pause", "suspend", "stop", "freeze"]),
    ("release", ["resume", "unpause", "continue", "unhold", "thaw"]),
    ("retry", ["rerun", "redo", "restart", "requeue", "again"]),
    ("prioritise", ["priority", "urgent", "bump", "raise", "promote", "nice", "renice", "hurry"]),
    ("cancel", ["rm", "remove", "delete", "del", "abort", "kill", "drop"]),
    ("status", ["ls", "list", "show", "info", "jobs", "queue", "ps", "stat", "top", "watch"]),
    ("verify", ["check", "test", "validate"]),
    ("clean", ["gc", "purge", "prune", "sweep", "cleanup"]),
    ("init", ["create", "new", "mkspool"]),
    ("run", ["start", "work", "worker", "daemon", "serve"]),
  ]

  /// The command that is most like `word`; nil if none is.
  static func command(for word: String, among commands: [String]) -> String? {
    let word = word.lowercasedASCII
    if commands.contains(word) { return word }
    if let other = synonyms.first(where: { $0.words.contains(word) && commands.contains($0.command) }) {
      return other.command
    }
    // One mistake in a short word, two in a longer one: any two words of four letters are four mistakes apart.
    let most = word.utf8.count <= 4 ? 1 : 2
    let near = commands.map { (command: $0, distance: distance(word, $0)) }.filter { $0.distance <= most }
    return near.min { $0.distance < $1.distance }?.command
  }

  /// The number of letters to insert, remove, replace, or exchange with their neighbour (optimal string alignment).
  static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var rows = [Array(0...right.count)]
    for i in left.indices {
      var row = [i + 1]
      for j in right.indices {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (left[i] == right[j] ? 0 : 1))
        if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { best = min(best, rows[i - 1][j - 1] + 1) }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }

  /// For a URL in the place of a command or a spool. It is not quoted, because it may contain a password.
  static let forURL =
    "this is a URL, not a spool: `spoolrun get URL` downloads it into the current directory, `spoolrun add URL` "
    + "drops it into a spool"

  /// What is wrong with the first argument if it is neither a command nor a spool, and what to write instead; nil if
  /// nothing is known to be wrong. Without this, the word would be the spool of the default command.
  static func complaint(about arguments: [String], commands: [String]) -> String? {
    guard let word = arguments.first, !word.begins(with: "-"), !commands.contains(word) else { return nil }
    if word.utf8.contains("://".utf8) { return forURL }
    guard !word.utf8.contains(0x2F), access(word, F_OK) != 0, let command = command(for: word, among: commands) else {
      return nil
    }
    return "\(escaped(word)): no such command, and no spool of this name; did you mean `spoolrun \(command)`?"
  }
}

/// `--spool SPOOL` may be before the name of each command.
enum LeadingSpool {
  /// The arguments with a leading `--spool SPOOL` moved behind the command's name. Before it, ArgumentParser would take
  /// it for an option of the default command, and the command's name for its spool.
  static func moved(in arguments: [String], commands: [String]) -> [String] {
    guard let first = arguments.first else { return arguments }
    let length = first == "--spool" ? 2 : first.begins(with: "--spool=") ? 1 : 0
    guard length > 0, arguments.count > length, commands.contains(arguments[length]) else { return arguments }
    return [arguments[length]] + arguments[..<length] + arguments[(length + 1)...]
  }
}
