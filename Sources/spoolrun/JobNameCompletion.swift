internal import ArgumentParser
internal import Spool

/// The names of jobs that a shell offers for a command's arguments.
enum JobNameCompletion {
  /// More than these help nobody, and reading on would keep the shell waiting.
  private static let most = 1000

  static let kind = CompletionKind.custom { (words: [String], _: Int, prefix: String) -> [String] in
    names(words: words).filter { $0.begins(with: prefix) }
  }

  /// - Parameter words: the command line so far, with the program's name.
  private static func names(words: [String]) -> [String] {
    let (owner, boot) = WorkerID.current()
    // A shell that completes has no place for an error.
    guard let spool = try? Spool(location(words), owner: owner, boot: boot) else { return [] }
    let found: [FileName]
    if let gesture = words.lazy.compactMap({ word in Gesture.allCases.first { $0.command == word } }).first {
      found = ((try? spool.jobs(for: gesture, in: gesture.sources)) ?? []).map(\.name)
    } else if words.contains("url") {
      // All that are not done.
      found = ((try? spool.jobs(for: .cancel, in: Gesture.cancel.sources)) ?? []).map(\.name)
    } else if words.contains("status") {
      found = [Directory.done, .new, .urgent, .partial, .hold, .failed].flatMap { (try? spool.list($0)) ?? [] }
    } else {
      found = (try? spool.list(.done)) ?? []
    }
    // A name that is not UTF-8 cannot be passed on, and one with a leading dash would be an option.
    let names = found.prefix(most).compactMap { String(validating: $0.bytes, as: UTF8.self) }
    return Set(names.filter { !$0.begins(with: "-") }).sorted()
  }

  private static func location(_ words: [String]) -> String {
    for (index, word) in words.enumerated() {
      if word == "--spool", index + 1 < words.count { return words[index + 1] }
      if word.begins(with: "--spool=") { return String(word.dropFirstBytes("--spool=".utf8.count)) }
    }
    return SpoolOpening.defaultLocation
  }
}
