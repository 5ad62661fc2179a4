from __future__ import annotations

from django.db import migrations

CATEGORIES = [
    ("action", "Action", "Does the picture show exactly this action?"),
    ("body_parts", "Body parts", "Does the picture show exactly these body parts?"),
    ("counting", "Counting", "Does the picture show exactly this number?"),
    ("negation", "Negation", "Is what the text rules out really absent?"),
    ("shapes", "Shapes", "Does the thing have exactly this shape?"),
    ("size_relation", "Size relation", "Is the size relation exactly as the text says?"),
    ("spatial_relation", "Spatial relation", "Are the things placed exactly as the text says?"),
    ("things_parts", "Parts of things", "Does the thing have exactly these parts?"),
]


def add_categories(apps, schema_editor):
    category = apps.get_model("prompts", "Category")
    for position, (slug, label, question) in enumerate(CATEGORIES, start=1):
        category.objects.update_or_create(
            slug=slug, defaults={"label": label, "position": position, "question": question}
        )


class Migration(migrations.Migration):
    dependencies = [("prompts", "0001_initial")]

    operations = [migrations.RunPython(add_categories, migrations.RunPython.noop)]
