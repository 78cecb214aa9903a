internal import ArgumentParser

/// The script for bash(1) that ArgumentParser makes knows nothing of a default command, and offers no names of commands
/// behind `help`.
enum CompletionScript {
  /// nil where the arguments ask for something else, or for another shell's script.
  static func asked(_ arguments: [String]) -> String? {
    let option = "--generate-completion-script"
    return arguments == [option, "bash"] || arguments == ["\(option)=bash"]
      ? mended(Spoolrun.completionScript(for: .bash)) : nil
  }

  /// `unparsed_words` has the words behind the program's name.
  private static func mended(_ script: String) -> String {
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
}
