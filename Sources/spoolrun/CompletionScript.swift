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
