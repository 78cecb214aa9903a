import TestSupport

/// What the program says of itself.
enum Help {
  static let commands = [
    "get", "run", "init", "doctor", "add", "subscribe", "verify", "status", "explain", "wait", "report", "hold",
    "release",
    "retry", "prioritise", "cancel", "url", "clean",
  ]

  /// The options that `spoolrun COMMAND --help` names, in both spellings, without those that every command has.
  static func options(of command: String) async throws -> Set<String> {
    let text = try await runTool([productPath("spoolrun"), command, "--help"]).output
    var options: Set<String> = []
    for line in text.split(separator: "\n") where line.hasPrefix("  -") {
      // The names end where the description's column starts.
      for word in line.dropFirst(2).prefix(while: { $0 != "<" }).split(separator: " ") {
        guard word.hasPrefix("-") else { break }
        options.insert(String(word.prefix { $0 != "," }))
      }
    }
    return options.subtracting(["-h", "--help", "--version"])
  }
}
