internal import ArgumentParser
internal import Spool

/// The scripts that ArgumentParser makes for shells know nothing of a default command, nor of a spool before the
/// command; the one for bash(1) offers no names of commands behind `help`.
enum CompletionScript {
  /// nil where the arguments ask for something else.
  static func asked(_ arguments: [String]) -> String? {
    let option = "--generate-completion-script"
    switch arguments {
    case [option, "bash"], ["\(option)=bash"]: return bash(Spoolrun.completionScript(for: .bash))
    case [option, "zsh"], ["\(option)=zsh"]: return zsh(Spoolrun.completionScript(for: .zsh))
    case [option, "fish"], ["\(option)=fish"]: return fish(Spoolrun.completionScript(for: .fish))
    default: return nil
    }
  }

  /// `unparsed_words` has the words behind the program's name.
  private static func bash(_ script: String) -> String {
    script.replacing(
      "    __spoolrun_offer_flags_options 0\n\n    # Offer subcommand /",
      with: """
            # The spool may be before the command. Without one, the options are those of run.
            if [[ "${unparsed_words[0]}" == --spool && ${#unparsed_words[@]} -gt 2 ]]; then
                unparsed_words=("${unparsed_words[@]:2}")
            fi
            if [[ "${unparsed_words[0]}" == -* ]]; then
                _spoolrun_run
                return
            fi
            __spoolrun_offer_flags_options 0

            # Offer subcommand /
        """
    ).replacing(
      "    __spoolrun_offer_flags_options -1\n}\n",
      with: """
            __spoolrun_offer_flags_options -1
            __spoolrun_add_completions -W '\(Spoolrun.commandNames.joined(separator: "'$'\\n''"))'
        }

        """)
  }

  /// The same for zsh(1), whose functions read `words`, with the program's name, and `CURRENT`.
  private static func zsh(_ script: String) -> String {
    script.replacing(
      "    local -ir current_word_index=\"$((CURRENT - 1))\"\n",
      with: """
            local -ir current_word_index="$((CURRENT - 1))"

            # The spool may be before the command. Without one, the options are those of run.
            if [[ "${words[2]}" == --spool ]] && (( CURRENT > 3 )); then
                words=("${words[1]}" "${(@)words[4,-1]}")
                (( CURRENT -= 2 ))
            fi
            if [[ "${words[2]}" == -* ]]; then
                _spoolrun_run
                return
            fi

        """)
  }

  /// The same for fish(1): the options of run are the program's own, too.
  private static func fish(_ script: String) -> String {
    let lines = script.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(Substring($0)) }
    let own = lines.filter { $0.utf8.contains("flags_or_options \"spoolrun run\" ".utf8) }
      .map { $0.replacing("\"spoolrun run\"", with: "\"spoolrun\"") }.filter { !lines.contains($0) }
    let parsing = "            __spoolrun_parse_subcommand 1 "
    let command = lines.first { $0.begins(with: "\(parsing)'once' ") } ?? parsing
    return script.replacing(
      "__spoolrun_parse_subcommand 0 'version' 'h/help'\n",
      with: "__spoolrun_parse_subcommand 0 \(command.dropFirstBytes(parsing.utf8.count))\n")
      + own.map { "\n" + $0 }.joined() + "\n"
  }
}

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
